#ifndef HOOKE_TESTS_BENCHMARKS_COORDINATOR_SIMULATED_RANKS_H_
#define HOOKE_TESTS_BENCHMARKS_COORDINATOR_SIMULATED_RANKS_H_

// The reports of one group's ranks, as hooke-rank makes them and hooke-worker passes them on. Pure: the caller passes
// the time. Not thread-safe.

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "worker/daemon/progress_filter.h"

namespace hooke {

// ReporterOptions::interval and profile_interval_max (worker/report/reporter.h).
constexpr absl::Duration kProgressEvery = absl::Milliseconds(500);
constexpr absl::Duration kProfileEvery = absl::Seconds(30);

// Counts the messages that were sent to the coordinator.
struct Sent {
  uint64_t rank_reports = 0;  // Progress of all ranks, also the part that daemons do not pass on.
  uint64_t progress = 0;      // The part that they pass on.
  uint64_t profiles = 0;
  uint64_t heartbeats = 0;
  uint64_t writes = 0;     // Messages on the streams; each has one or more of those above.
  double late_ms_max = 0;  // The longest time from when a report was due until it was made.

  void Add(const Sent& other);
};

class SimulatedRanks {
 public:
  // The ranks begin to report at `start`. `shift`, from 0 to 1, is where in an interval their profiles fall.
  SimulatedRanks(uint32_t ranks, absl::Time start, double shift);

  // The events with which a group begins: its start, and each rank's hello.
  static std::vector<v1::GroupEvent> FirstEvents(uint32_t ranks);
  // The reports that are due, in order, without those that ProgressFilter holds back. Adds to `sent`.
  std::vector<v1::GroupEvent> Due(absl::Time now, Sent& sent);
  // The step of the last progress of rank 0; 0 before it.
  uint64_t step() const { return step_; }

 private:
  struct Rank {
    absl::Time next_progress;
    absl::Time next_profile;
  };

  const absl::Time start_;
  ProgressFilter filter_;
  std::vector<Rank> ranks_;
  uint64_t step_ = 0;
};

// A profile of as many events as hooke-rank keeps, with the statistics of a small model's collectives: 25 KiB.
v1::RankProfile ExampleProfile();

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COORDINATOR_SIMULATED_RANKS_H_
