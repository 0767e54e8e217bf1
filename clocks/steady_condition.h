#ifndef HOOKE_CLOCKS_STEADY_CONDITION_H_
#define HOOKE_CLOCKS_STEADY_CONDITION_H_

// A condition variable whose deadlines do not depend on the machine's wall clock. Waits of Abseil's CondVar and Mutex
// do depend on it, even those with a timeout. If the clock is set back by an hour, they wait an hour longer.

#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hooke {

// Like absl::CondVar, but deadlines are on SteadyTime's clock (clocks/steady_time.h). Thread-safe.
class SteadyCondition {
 public:
  // Wakes all waiting threads. A thread that holds the mutex from its last check until it waits misses no change that
  // was made under that mutex.
  void SignalAll() { condition_.notify_all(); }
  // Releases `mutex` while it waits. Returns when signalled, at the deadline, or spuriously, so the caller must check
  // its condition again.
  void WaitUntil(absl::Mutex& mutex, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  std::condition_variable_any condition_;
};

}  // namespace hooke

#endif  // HOOKE_CLOCKS_STEADY_CONDITION_H_
