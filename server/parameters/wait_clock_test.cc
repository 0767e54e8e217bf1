#include "server/parameters/wait_clock.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/mutex.h"
#include "server/parameters/test_clock.h"

namespace hooke {
namespace {

// A wait ends at its deadline or when it is signalled, with the mutex held again.
TEST(SteadyWaitClock, WaitsUntilTheDeadlineOrASignal) {
  SteadyWaitClock clock;
  absl::Mutex mutex;
  SteadyCondition changed;
  bool done = false;
  const absl::Time start = clock.Now();
  {
    absl::MutexLock lock(&mutex);
    while (clock.Now() < start + absl::Milliseconds(30)) clock.Wait(changed, mutex, start + absl::Milliseconds(30));
    mutex.AssertHeld();
  }
  std::thread signaller([&] {
    absl::MutexLock lock(&mutex);
    done = true;
    changed.SignalAll();
  });
  {
    absl::MutexLock lock(&mutex);
    while (!done) clock.Wait(changed, mutex, absl::InfiniteFuture());
  }
  signaller.join();
}

// While the clock stands still no deadline passes. When it goes on, the threads whose deadline has come are woken.
TEST(TestClock, GoesOnWhenItIsTold) {
  TestClock clock;
  absl::Mutex mutex;
  SteadyCondition changed;
  const absl::Time deadline = clock.Now() + absl::Hours(1);
  bool over = false;
  std::thread waiting([&] {
    absl::MutexLock lock(&mutex);
    while (clock.Now() < deadline) clock.Wait(changed, mutex, deadline);
    over = true;
  });
  ASSERT_TRUE(clock.AwaitWaiting(1));
  clock.Advance(absl::Minutes(59));
  ASSERT_TRUE(clock.AwaitWaiting(1));
  {
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(over);
  }
  clock.Advance(absl::Minutes(1));
  waiting.join();
  EXPECT_TRUE(over);
}

}  // namespace
}  // namespace hooke
