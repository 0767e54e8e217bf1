#ifndef HOOKE_WORKER_BENCH_CARRIERS_H_
#define HOOKE_WORKER_BENCH_CARRIERS_H_

// Whether messages between nodes are faster over sockets of Hooke's own or through MPI. Part of Measure.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "mpi_group/tuning.h"

namespace hooke {

// How long an all-reduce of so many bytes took over one of them; times are the slowest rank's.
struct CarrierTime {
  Tuning::BetweenNodes carrier = Tuning::BetweenNodes::kSockets;
  uint64_t bytes = 0;
  double median_us = 0;
  double quarter_us = 0;  // A quarter of the times were shorter.
};

struct CarriersOptions {
  absl::Duration time_max = absl::Seconds(3);
  uint64_t bytes_max = uint64_t{1} << 20;
  // Makes a group of all ranks, which has several nodes; collective.
  std::function<absl::StatusOr<std::unique_ptr<Group>>(const Tuning& tuning)> make_group;
};

// Collective: all-reduces of private values by the default rules, of 4 bytes and then 64 times as many up to
// `bytes_max`, the carriers taking turns. The same on every rank. Where no connection can be made both go through MPI.
// A group's error is returned as it is.
absl::StatusOr<std::vector<CarrierTime>> MeasureCarriers(const CarriersOptions& options);

// The carrier whose medians are shorter than the other's better times (quarter_us) by more than `margin` (0.05: 5 %),
// on the geometric mean over the sizes; kAuto where neither is. Pure. `times`: as MeasureCarriers has them.
Tuning::BetweenNodes FitCarrier(const std::vector<CarrierTime>& times, double margin);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_CARRIERS_H_
