#ifndef HOOKE_SERVER_PARAMETERS_TEST_CLOCK_H_
#define HOOKE_SERVER_PARAMETERS_TEST_CLOCK_H_

// A clock for tests that stands still until Advance is called.

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

  // Moves the time forward and wakes the threads whose deadline has come.
  void Advance(absl::Duration by);
  // Returns true once this many threads wait for a deadline in the future; false after 30 real seconds.
  bool AwaitWaiting(size_t threads);
  // Returns the number of waits that have begun. A thread that is woken in vain waits again, which counts as another
  // wait.
  size_t waits() const;

 private:
  struct Waiting {
    SteadyCondition* changed = nullptr;
    absl::Mutex* mutex = nullptr;
    absl::Time deadline;
    int wakers = 0;  // Calls of Advance that are about to wake this thread.
  };

  mutable absl::Mutex mutex_;  // A waiting thread's mutex is locked before this one.
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
  std::list<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waits_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_CLOCK_H_
