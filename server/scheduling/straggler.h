#ifndef HOOKE_SERVER_SCHEDULING_STRAGGLER_H_
#define HOOKE_SERVER_SCHEDULING_STRAGGLER_H_

// Is a group slower than its peers? Pure: the caller passes the time, which is steady.
//
// A group is judged by the time that it works on a step: the time of computing, and of the collectives between its
// ranks. Waits for servers and for other groups do not count, because under rules with rounds all groups wait for the
// slowest one.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace hooke {

struct StragglerOptions {
  // A measurement takes at least this long, and this many steps.
  absl::Duration window = absl::Seconds(30);
  uint64_t steps_min = 5;
  double factor = 1.5;  // A group is slow if it works longer than this times the median of its peers.
  // A count goes up by 1, to at most this number, with each measurement in which the group was slow. It goes down by 1,
  // to at least 0, with each other one. The group is a straggler from when the count is this number until it is 0.
  uint32_t windows = 2;
  // A straggler that was moved is not moved again within this time, and it is moved only so often: if it is slow
  // everywhere, the workers are not to blame.
  absl::Duration move_again = absl::Minutes(10);
  uint32_t moves_max = 2;
};

// Measures the work of a step of one start of a group.
class StepWork {
 public:
  // Takes a report: the step, and the time of work since the group started. Returns whether a measurement has ended.
  bool Note(absl::Duration now, uint64_t step, absl::Duration work, const StragglerOptions& options);

  // The mean of the last measurement; nullopt: there is none.
  std::optional<absl::Duration> of_a_step() const { return of_a_step_; }

 private:
  struct Report {
    absl::Duration at;
    uint64_t step = 0;
    absl::Duration work;
  };
  std::optional<Report> began_;
  std::optional<absl::Duration> of_a_step_;
};

// Returns the median, of an even number the lower one. `times` is not empty.
absl::Duration Median(std::vector<absl::Duration> times);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_STRAGGLER_H_
