#include "server/parameters/snapshot_loop.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"

namespace hooke {
namespace {

// The function is called again and again, and once more by Stop, whose result is that of the last call.
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

// Stop does not wait for the interval, and a loop that is only destroyed does not call again.
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
