#ifndef HOOKE_WORKER_BENCH_FIT_TUNING_H_
#define HOOKE_WORKER_BENCH_FIT_TUNING_H_

// From times to a tuning. Pure. Called by hooke-bench after it has measured.

#include <cstdint>
#include <vector>

#include "mpi_group/choose_algorithm.h"
#include "mpi_group/operation.h"
#include "mpi_group/tuning.h"

namespace hooke {

// How long one operation on so many bytes took one way.
struct Measurement {
  Operation operation = Operation::kAllReduce;
  bool shared = false;  // The values lie in an arena of the node's ranks.
  uint64_t bytes = 0;
  Choice choice;
  double median_us = 0;   // Of the slowest rank.
  double quarter_us = 0;  // A quarter of the times were shorter.
  uint64_t calls = 0;
};

// Rules for groups of at most as many ranks as were measured, where they were measured: on one node or on several; and,
// if there were more ranks than cores, only for groups of which that is so too. The way that Hooke chooses by default
// keeps each size at which no other's median is shorter than its own better times (its quarter_us) by more than
// `margin` (0.05: 5 %): noise writes no rules. What is faster than the way of the next smaller size by less than that
// does not replace it either. Between two measured sizes the middle one (geometrically) divides two ways; what is
// larger than all that was measured is left to the defaults. Where the default's own time is missing, there is no rule.
Tuning FitTuning(const Topology& topology, const std::vector<Measurement>& measurements, double margin);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_FIT_TUNING_H_
