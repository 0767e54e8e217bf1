#ifndef HOOKE_SERVER_SCHEDULING_PACE_H_
#define HOOKE_SERVER_SCHEDULING_PACE_H_

// When does a running group end? An estimate from its progress. Pure.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace hooke {

// The progress of one start of a group.
struct Pace {
  uint64_t first_step = 0;   // The first step that it reported.
  uint64_t step = 0;         // The last step that it reported.
  uint64_t steps_total = 0;  // 0: not known.
  absl::Duration worked;     // The time between its first and its last report.
};

// Returns the time that was left at the last report if the group goes on as it went so far. nullopt: it has worked for
// too short a time, or the length of its task is not known.
std::optional<absl::Duration> TimeLeft(const Pace& pace);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_PACE_H_
