#include "clocks/stop_signal.h"

#include "clocks/steady_time.h"

namespace hooke {

void StopSignal::Notify() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  notified_.SignalAll();
}

bool StopSignal::HasBeenNotified() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

bool StopSignal::WaitFor(absl::Duration pause) const {
  const absl::Time until = SteadyTime() + pause;
  absl::MutexLock lock(&mutex_);
  while (!stopped_ && SteadyTime() < until) notified_.WaitUntil(mutex_, until);
  return stopped_;
}

}  // namespace hooke
