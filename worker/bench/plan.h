#ifndef HOOKE_WORKER_BENCH_PLAN_H_
#define HOOKE_WORKER_BENCH_PLAN_H_

// What hooke-bench measures: which operations, sizes and ways. Pure; the same on every rank.

#include <cstdint>
#include <vector>

#include "mpi_group/choose_algorithm.h"
#include "mpi_group/operation.h"
#include "mpi_group/tuning.h"

namespace hooke {

// The tunings that are compared, each with a group of its own: the first is empty, so that Hooke's default is one of
// them; any other forces one algorithm with one chunk size on every operation that can be done by it.
const std::vector<Tuning>& Ways();

// One way in a cell.
struct Candidate {
  size_t way = 0;  // In Ways().
  Choice choice;   // What it comes to here.
};

// One operation on so many bytes, in each of the ways that the ranks have; no two of them are the same.
struct PlannedCell {
  Operation operation = Operation::kAllReduce;
  bool shared = false;
  uint64_t bytes = 0;
  std::vector<Candidate> candidates;  // The default first.
};

// All-reduce first; sizes ascend from 4 bytes, by 4 each, to `bytes_max`. Cells of one operation are neighbours.
// Left out is what cannot win: copies of large values that lie in an arena, everything through one rank beyond 64 KiB.
std::vector<PlannedCell> PlanCells(const Topology& topology, uint64_t bytes_max);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_PLAN_H_
