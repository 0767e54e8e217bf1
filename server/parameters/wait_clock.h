#ifndef HOOKE_SERVER_PARAMETERS_WAIT_CLOCK_H_
#define HOOKE_SERVER_PARAMETERS_WAIT_CLOCK_H_

// A clock for waits. It is steady: setting the machine's clock makes no wait longer or shorter. Abseil's CondVar and
// Mutex depend on the machine's clock, even when they are given a timeout.

#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hooke {

// Like absl::CondVar, but deadlines are on SteadyTime's clock (wire/steady_time.h). Thread-safe.
class SteadyCondition {
 public:
  // Wakes all waiting threads. A thread that holds the mutex from its last check to its wait misses no change that was
  // made under that mutex.
  void SignalAll() { condition_.notify_all(); }
  // Releases `mutex` while it waits. Returns when signalled, at the deadline, or spuriously: check again.
  void WaitUntil(absl::Mutex& mutex, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  std::condition_variable_any condition_;
};

// Thread-safe.
class WaitClock {
 public:
  virtual ~WaitClock() = default;
  virtual absl::Time Now() const = 0;
  // Like SteadyCondition::WaitUntil, with a deadline on this clock.
  virtual void Wait(SteadyCondition& changed, absl::Mutex& mutex, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
};

class SteadyWaitClock final : public WaitClock {
 public:
  absl::Time Now() const override;
  void Wait(SteadyCondition& changed, absl::Mutex& mutex, absl::Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_WAIT_CLOCK_H_
