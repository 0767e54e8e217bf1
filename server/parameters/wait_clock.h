#ifndef HOOKE_SERVER_PARAMETERS_WAIT_CLOCK_H_
#define HOOKE_SERVER_PARAMETERS_WAIT_CLOCK_H_

// The time that waits go by. It is steady: whoever sets the machine's clock makes no wait longer or shorter. Abseil's
// CondVar and Mutex go by the machine's clock even where they are given a timeout.

#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hooke {

// As absl::CondVar, with deadlines by SteadyTime (wire/steady_time.h). Thread-safe.
class SteadyCondition {
 public:
  // Wakes all who wait. Nobody who holds the mutex between its last look and its wait misses it.
  void SignalAll() { condition_.notify_all(); }
  // Releases `mutex` while it waits. Returns when it is signalled, at the deadline, or for no reason: look again.
  void WaitUntil(absl::Mutex& mutex, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  std::condition_variable_any condition_;
};

// Thread-safe.
class WaitClock {
 public:
  virtual ~WaitClock() = default;
  virtual absl::Time Now() const = 0;
  // As SteadyCondition::WaitUntil, with a deadline by this clock.
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
