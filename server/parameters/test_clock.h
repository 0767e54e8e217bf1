#ifndef HOOKE_SERVER_PARAMETERS_TEST_CLOCK_H_
#define HOOKE_SERVER_PARAMETERS_TEST_CLOCK_H_

// A clock for tests that stands still until it is told to go on.

#include <cstddef>
#include <list>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

// Thread-safe.
class TestClock final : public WaitClock {
 public:
  absl::Time Now() const override;
  void Wait(SteadyCondition& changed, absl::Mutex& mutex, absl::Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Whoever waits looks again. What they wait for outlives the call.
  void Advance(absl::Duration by);
  // Returns when so many threads wait, all for a deadline that is to come; false after 30 real seconds.
  bool AwaitWaiting(size_t threads);

 private:
  struct Waiting {
    SteadyCondition* changed = nullptr;
    absl::Mutex* mutex = nullptr;
    absl::Time deadline;
  };

  mutable absl::Mutex mutex_;  // Taken after a waiter's.
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
  std::list<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_CLOCK_H_
