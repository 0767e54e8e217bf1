#include "clocks/stop_signal.h"

#include <gtest/gtest.h>

#include <thread>

#include "clocks/steady_time.h"

namespace hooke {
namespace {

// If nobody notifies, a pause lasts as long as it should.
TEST(StopSignal, PausesUntilItsTimeIsOver) {
  StopSignal signal;
  const absl::Time begin = SteadyTime();
  EXPECT_FALSE(signal.WaitFor(absl::Milliseconds(20)));
  EXPECT_GE(SteadyTime() - begin, absl::Milliseconds(20));
  EXPECT_FALSE(signal.HasBeenNotified());
}

// Notify ends a running pause and every later pause at once.
TEST(StopSignal, NotifyEndsPauses) {
  StopSignal signal;
  std::thread paused([&signal] { EXPECT_TRUE(signal.WaitFor(absl::Hours(1))); });
  signal.Notify();
  paused.join();
  EXPECT_TRUE(signal.HasBeenNotified());
  EXPECT_TRUE(signal.WaitFor(absl::Hours(1)));
}

}  // namespace
}  // namespace hooke
