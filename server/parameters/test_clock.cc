#include "server/parameters/test_clock.h"

#include <algorithm>
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
  // The caller may destroy `changed` and `mutex` after this call, so wait until no Advance uses them any more. Advance
  // locks `mutex`, so release it meanwhile.
  mutex.Unlock();
  {
    absl::MutexLock lock(&mutex_);
    const auto is_free = [&own] { return own->wakers == 0; };
    mutex_.Await(absl::Condition(&is_free));
    waiting_.erase(own);
  }
  mutex.Lock();
}

void TestClock::Advance(absl::Duration by) {
  std::vector<Waiting*> due;
  {
    absl::MutexLock lock(&mutex_);
    now_ += by;
    for (Waiting& each : waiting_) {
      if (each.deadline > now_) continue;
      ++each.wakers;
      due.push_back(&each);
    }
  }
  for (Waiting* each : due) {
    {
      absl::MutexLock lock(each->mutex);
      each->changed->SignalAll();
    }
    absl::MutexLock lock(&mutex_);
    --each->wakers;
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
