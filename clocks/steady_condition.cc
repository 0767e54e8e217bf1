#include "clocks/steady_condition.h"

#include <chrono>

namespace hooke {
namespace {

// Gives absl::Mutex the method names of the standard library. The thread-safety analysis cannot follow that. The
// annotation of WaitUntil states the facts for it.
class StandardMutex {
 public:
  explicit StandardMutex(absl::Mutex& mutex) : mutex_(mutex) {}
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }

 private:
  absl::Mutex& mutex_;
};

}  // namespace

void SteadyCondition::WaitUntil(absl::Mutex& mutex, absl::Time deadline) {
  StandardMutex lock(mutex);
  if (deadline == absl::InfiniteFuture()) {
    condition_.wait(lock);
    return;
  }
  condition_.wait_until(lock,
                        std::chrono::steady_clock::time_point(absl::ToChronoNanoseconds(deadline - absl::UnixEpoch())));
}

}  // namespace hooke
