#ifndef HOOKE_CLOCKS_STEADY_TIME_H_
#define HOOKE_CLOCKS_STEADY_TIME_H_

// The clock for deadlines and durations: the time since an arbitrary moment, so it tells no date. It does not change
// when somebody sets the machine's clock.

#include <chrono>

#include "absl/time/time.h"

namespace hooke {

inline absl::Time SteadyTime() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace hooke

#endif  // HOOKE_CLOCKS_STEADY_TIME_H_
