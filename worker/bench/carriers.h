#ifndef HOOKE_WORKER_BENCH_CARRIERS_H_
#define HOOKE_WORKER_BENCH_CARRIERS_H_

// Measures whether messages between nodes are faster over Hooke's own sockets or through MPI.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "mpi_group/tuning.h"

namespace hooke {

// How long an all-reduce of `bytes` bytes took over one carrier. A time is that of the slowest rank.
struct CarrierTime {
  Tuning::BetweenNodes carrier = Tuning::BetweenNodes::kSockets;
  uint64_t bytes = 0;
  double median_us = 0;
  double quarter_us = 0;  // The lower quartile: a quarter of the times were shorter.
};

struct CarriersOptions {
  absl::Duration time_max = absl::Seconds(3);
  uint64_t bytes_max = uint64_t{1} << 20;
  // Makes a group of all ranks, by `tuning`. The ranks are on several nodes. Collective.
  std::function<absl::StatusOr<std::unique_ptr<Group>>(const Tuning& tuning)> make_group;
};

// Times all-reduces over each carrier, with the algorithms of DefaultRules. The values lie in ordinary memory, not in
// an arena. Sizes go from 4 bytes to `bytes_max`, each 64 times the last one; at each size the carriers take turns.
// Collective; all ranks get the same result. If no socket connection can be made, the groups of both carriers use MPI.
// A group's error is returned as it is.
absl::StatusOr<std::vector<CarrierTime>> MeasureCarriers(const CarriersOptions& options);

// Returns the faster carrier, or kAuto if neither is faster by more than `margin` (0.05: 5 %). A carrier is faster if
// its medians are below the other one's lower quartiles, in the geometric mean over the sizes. `times` is the result of
// MeasureCarriers. Pure.
Tuning::BetweenNodes FitCarrier(const std::vector<CarrierTime>& times, double margin);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_CARRIERS_H_
