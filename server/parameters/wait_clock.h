#ifndef HOOKE_SERVER_PARAMETERS_WAIT_CLOCK_H_
#define HOOKE_SERVER_PARAMETERS_WAIT_CLOCK_H_

// A clock for waits. It is steady: setting the machine's clock makes no wait longer or shorter. Tests use a clock of
// their own (test_clock.h).

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/steady_condition.h"

namespace hooke {

// Thread-safe.
class WaitClock {
 public:
  virtual ~WaitClock() = default;
  virtual absl::Time Now() const = 0;
  // Waits like SteadyCondition::WaitUntil, with a deadline on this clock.
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
