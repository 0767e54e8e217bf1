#ifndef HOOKE_CLOCKS_STEADY_TIME_H_
#define HOOKE_CLOCKS_STEADY_TIME_H_

// The clock for deadlines and durations: the time since an arbitrary moment, so it tells no date. It does not change
// when somebody sets the machine's clock.
//
// SteadyNow() of mpi_group/ shows the same time.

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hooke {

inline absl::Time SteadyTime() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Returns what the machine's clock shows at a SteadyTime(), by its present setting: for people.
inline absl::Time WallTimeOf(absl::Time steady) { return absl::Now() - (SteadyTime() - steady); }

}  // namespace hooke

#endif  // HOOKE_CLOCKS_STEADY_TIME_H_
