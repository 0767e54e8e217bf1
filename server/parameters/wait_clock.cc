#include "server/parameters/wait_clock.h"

#include "clocks/steady_time.h"

namespace hooke {

absl::Time SteadyWaitClock::Now() const { return SteadyTime(); }

void SteadyWaitClock::Wait(SteadyCondition& changed, absl::Mutex& mutex, absl::Time deadline) {
  changed.WaitUntil(mutex, deadline);
}

}  // namespace hooke
