#include "server/parameters/snapshot_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "absl/synchronization/notification.h"
#include "server/parameters/test_clock.h"

namespace hooke {
namespace {

// The function is called again and again, and once more by Stop, which returns the last call's result.
TEST(SnapshotLoop, CallsEachIntervalAndAtStop) {
  std::atomic<int> calls{0};
  absl::Notification third;
  SnapshotLoop loop(absl::Milliseconds(1), [&]() {
    if (++calls == 3) third.Notify();
    return absl::UnavailableError("disk");
  });
  ASSERT_TRUE(third.WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_EQ(loop.Stop().message(), "disk");
  const int at_stop = calls;
  EXPECT_GE(at_stop, 4);
  EXPECT_TRUE(loop.Stop().ok());
  EXPECT_EQ(calls, at_stop);
}

// The loop's clock measures the interval.
TEST(SnapshotLoop, GoesByItsClock) {
  const auto clock = std::make_shared<TestClock>();
  std::atomic<int> calls{0};
  SnapshotLoop loop(
      absl::Hours(1),
      [&calls]() {
        ++calls;
        return absl::OkStatus();
      },
      clock);
  for (int hour = 1; hour <= 3; ++hour) {
    ASSERT_TRUE(clock->AwaitWaiting(1));
    clock->Advance(absl::Minutes(59));
    ASSERT_TRUE(clock->AwaitWaiting(1));
    EXPECT_EQ(calls, hour - 1);
    clock->Advance(absl::Minutes(1));
    ASSERT_TRUE(clock->AwaitWaiting(1));
    EXPECT_EQ(calls, hour);
  }
}

// Stop does not wait for the interval. A loop that is destroyed without Stop does not call again.
TEST(SnapshotLoop, EndsAtOnce) {
  std::atomic<int> calls{0};
  const auto count = [&]() {
    ++calls;
    return absl::OkStatus();
  };
  { SnapshotLoop loop(absl::Hours(1), count); }
  EXPECT_EQ(calls, 0);
  SnapshotLoop loop(absl::Hours(1), count);
  EXPECT_TRUE(loop.Stop().ok());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace hooke
