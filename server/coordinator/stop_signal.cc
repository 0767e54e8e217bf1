#include "server/coordinator/stop_signal.h"

#include <chrono>

namespace hooke {

void StopSignal::Notify() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  notified_.notify_all();
}

bool StopSignal::HasBeenNotified() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopped_;
}

bool StopSignal::WaitFor(absl::Duration pause) const {
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(pause);
  std::unique_lock<std::mutex> lock(mutex_);
  return notified_.wait_until(lock, until, [this] { return stopped_; });
}

}  // namespace hooke
