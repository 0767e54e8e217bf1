// Two threads touch data under an absl::Mutex, and wait with a condition of the mutex or with a condition variable.
// Without the shim ThreadSanitizer reports races.

#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace {

struct Turns {
  absl::Mutex mutex;
  absl::CondVar changed;
  int turn ABSL_GUARDED_BY(mutex) = 0;
};

constexpr int kTurns = 1000;

// Two threads hand a counter to each other and wait with a condition of the mutex.
TEST(AbslMutexForTsan, AwaitOrders) {
  Turns turns;
  const auto play = [&](int parity) {
    for (int i = 0; i < kTurns; ++i) {
      absl::MutexLock lock(&turns.mutex);
      const auto mine = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turns.mutex) { return turns.turn % 2 == parity; };
      turns.mutex.AwaitWithTimeout(absl::Condition(&mine), absl::Seconds(10));
      ++turns.turn;
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  absl::MutexLock lock(&turns.mutex);
  EXPECT_EQ(turns.turn, 2 * kTurns);
}

// Two threads hand a counter to each other and wait with a condition variable.
TEST(AbslMutexForTsan, CondVarOrders) {
  Turns turns;
  const auto play = [&](int parity) {
    for (int i = 0; i < kTurns; ++i) {
      absl::MutexLock lock(&turns.mutex);
      while (turns.turn % 2 != parity) turns.changed.WaitWithTimeout(&turns.mutex, absl::Seconds(10));
      ++turns.turn;
      turns.changed.SignalAll();
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  absl::MutexLock lock(&turns.mutex);
  EXPECT_EQ(turns.turn, 2 * kTurns);
}

}  // namespace
