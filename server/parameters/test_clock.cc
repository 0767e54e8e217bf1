#include "server/parameters/test_clock.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace hooke {

absl::Time TestClock::Now() const {
  absl::MutexLock lock(&mutex_);
  return now_;
}

void TestClock::Wait(SteadyCondition& changed, absl::Mutex& mutex, absl::Time deadline) {
  std::list<Waiting>::iterator own;
  {
    absl::MutexLock lock(&mutex_);
    if (now_ >= deadline) return;  // Advance was called after the caller looked at the clock.
    ++waits_;
    own = waiting_.insert(waiting_.end(), {&changed, &mutex, deadline});
  }
  changed.WaitUntil(mutex, absl::InfiniteFuture());
  absl::MutexLock lock(&mutex_);
  waiting_.erase(own);
}

void TestClock::Advance(absl::Duration by) {
  std::vector<Waiting> due;
  {
    absl::MutexLock lock(&mutex_);
    now_ += by;
    const auto is_due = [this](const Waiting& each)
                            ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return each.deadline <= now_; };
    std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(due), is_due);
  }
  for (const Waiting& each : due) {
    absl::MutexLock lock(each.mutex);
    each.changed->SignalAll();
  }
}

size_t TestClock::waits() const {
  absl::MutexLock lock(&mutex_);
  return waits_;
}

bool TestClock::AwaitWaiting(size_t threads) {
  absl::MutexLock lock(&mutex_);
  const auto all_wait = [this, threads]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const auto waits = [this](const Waiting& each) ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return each.deadline > now_; };
    return static_cast<size_t>(std::count_if(waiting_.begin(), waiting_.end(), waits)) == threads;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&all_wait), absl::Seconds(30));
}

}  // namespace hooke
