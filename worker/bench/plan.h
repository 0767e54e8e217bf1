#ifndef HOOKE_WORKER_BENCH_PLAN_H_
#define HOOKE_WORKER_BENCH_PLAN_H_

// The plan of a measurement: operations, sizes, and the algorithms to compare. Pure; the plan is the same on every
// rank.

#include <cstdint>
#include <vector>

#include "mpi_group/choose_algorithm.h"
#include "mpi_group/operation.h"
#include "mpi_group/tuning.h"

namespace hooke {

// The tunings that are compared. The first one is empty, so it gives Hooke's default. Each of the others forces one
// algorithm and one chunk size on every operation that the algorithm can do.
const std::vector<Tuning>& Ways();

// One of Ways() that is measured in a cell.
struct Candidate {
  size_t way = 0;  // Index in Ways().
  Choice choice;   // The algorithm that this way gives in the cell.
};

// One operation on `bytes` bytes, and all choices that are possible on the topology. No two candidates have the same
// choice.
struct PlannedCell {
  Operation operation = Operation::kAllReduce;
  bool shared = false;
  uint64_t bytes = 0;
  std::vector<Candidate> candidates;  // The default comes first.
};

// Cells of one operation are adjacent; all-reduce comes first. Sizes ascend from 4 bytes to `bytes_max`, each four
// times the last one. Algorithms that cannot win are left out, unless they are the default. kReference cannot win
// beyond 64 KiB. For values in an arena only kArena, kTwoLevel and, up to 1 MiB, the staged algorithms can win.
std::vector<PlannedCell> PlanCells(const Topology& topology, uint64_t bytes_max);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_PLAN_H_
