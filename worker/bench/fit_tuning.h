#ifndef HOOKE_WORKER_BENCH_FIT_TUNING_H_
#define HOOKE_WORKER_BENCH_FIT_TUNING_H_

// Makes a tuning from measured times. Pure.

#include <cstdint>
#include <vector>

#include "mpi_group/choose_algorithm.h"
#include "mpi_group/operation.h"
#include "mpi_group/tuning.h"

namespace hooke {

// The time that one operation on `bytes` bytes took with one choice of algorithm.
struct Measurement {
  Operation operation = Operation::kAllReduce;
  bool shared = false;  // Whether the values lie in an arena, which the node's ranks share.
  uint64_t bytes = 0;
  Choice choice;
  double median_us = 0;   // Median of the calls' times. A call's time is that of the slowest rank.
  double quarter_us = 0;  // The lower quartile of these times: a quarter of them were shorter.
  uint64_t calls = 0;
};

// Returns rules for groups like the measured one. Such a group has at most as many ranks. It is on several nodes
// exactly if the measured group was. If a node of the measured group had more ranks than cores, one of such a group's
// nodes has, too.
//
// `margin` (0.05: 5 %) keeps noise from writing rules. At each size Hooke's default stays unless another choice's
// median is shorter than the default's lower quartile by more than `margin`. If the next smaller size has another
// choice, that choice also stays unless the best one is faster by more than `margin`.
//
// The border between two choices is the geometric middle of two measured sizes. Sizes beyond the largest measured one
// are left to the defaults. If the default's time is missing at a size, there are no rules for that size and larger
// ones.
Tuning FitTuning(const Topology& topology, const std::vector<Measurement>& measurements, double margin);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_FIT_TUNING_H_
