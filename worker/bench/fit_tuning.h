#ifndef HOOKE_WORKER_BENCH_FIT_TUNING_H_
#define HOOKE_WORKER_BENCH_FIT_TUNING_H_

// Makes a tuning from measured times. Pure.

#include <cstdint>
#include <vector>

#include "mpi_group/choose_algorithm.h"
#include "mpi_group/operation.h"
#include "mpi_group/tuning.h"

namespace hooke {

// How long one operation on `bytes` bytes took by one choice of algorithm.
struct Measurement {
  Operation operation = Operation::kAllReduce;
  bool shared = false;  // The values lie in an arena of the node's ranks.
  uint64_t bytes = 0;
  Choice choice;
  double median_us = 0;   // Median of the slowest rank's times.
  double quarter_us = 0;  // The lower quartile: a quarter of the times were shorter.
  uint64_t calls = 0;
};

// Returns rules for groups like the measured one: with at most as many ranks, on one node or on several as it was, and
// with more ranks than cores only if it had more.
//
// `margin` (0.05: 5 %) keeps noise from writing rules. At each size Hooke's default stays unless another choice's
// median is shorter than the default's lower quartile by more than `margin`. The choice of the next smaller size also
// stays unless the best one is faster by more than `margin`.
//
// The border between two choices is the geometric middle of two measured sizes. Sizes beyond the largest measured one
// are left to the defaults. From a size on at which the default's time is missing, there are no rules.
Tuning FitTuning(const Topology& topology, const std::vector<Measurement>& measurements, double margin);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_FIT_TUNING_H_
