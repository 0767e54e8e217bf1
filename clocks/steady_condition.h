#ifndef HOOKE_CLOCKS_STEADY_CONDITION_H_
#define HOOKE_CLOCKS_STEADY_CONDITION_H_

// A condition variable whose deadlines do not depend on the machine's wall clock. Waits of Abseil's CondVar and Mutex
// do depend on it, even those with a timeout. If the clock is set back by an hour, they wait an hour longer.

#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"

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
  // Waits until `holds()` is true, which is called with the mutex held, or until the deadline. Returns whether it is
  // true. Each change that may make it true must be signalled.
  template <typename Condition>
  bool Await(absl::Mutex& mutex, absl::Time deadline, const Condition& holds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!holds()) {
      if (SteadyTime() >= deadline) return false;
      WaitUntil(mutex, deadline);
    }
    return true;
  }

 private:
  std::condition_variable_any condition_;
};

// Waits until the condition is true, or until the deadline, a SteadyTime(). Returns whether it is true. For places
// where every microsecond counts: nobody has to signal. A clock that is set forward does not end the wait early. One
// that is set back while a thread waits makes that wait longer, if the condition does not become true.
inline bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition, absl::Time deadline)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  while (!mutex.AwaitWithTimeout(condition, deadline - SteadyTime())) {
    if (SteadyTime() >= deadline) return false;
  }
  return true;
}

}  // namespace hooke

#endif  // HOOKE_CLOCKS_STEADY_CONDITION_H_
