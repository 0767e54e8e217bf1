#include "mpi_group/mpi/mpi_watchdog.h"

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// If a call does not return, the process ends with a message that names both ranks.
TEST(MpiWatchdogDeathTest, EndsAProcessWhoseCallDoesNotReturn) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        MpiWatchdog watchdog(3);
        const MpiWatchdog::Watch watch(watchdog, SteadyNow() - MpiWatchdog::kMargin, "a message from", 1);
        absl::Notification never;
        never.WaitForNotificationWithTimeout(absl::Seconds(60));
      },
      testing::ExitedWithCode(1), "rank 3: MPI has not returned for 10s after the deadline of a message from rank 1;");
}

// Waits for longer than the watchdog's pause between two looks, and for less than its margin.
void LetItLook() {
  absl::Notification never;
  EXPECT_FALSE(never.WaitForNotificationWithTimeout(absl::Milliseconds(1500)));
}

// The watchdog ignores a wait that has ended, even if it ended late; otherwise the process would end here.
TEST(MpiWatchdogTest, LeavesEndedWaitsAlone) {
  MpiWatchdog watchdog(0);
  { const MpiWatchdog::Watch late(watchdog, SteadyNow() - absl::Hours(1), "a message from", 1); }
  LetItLook();
}

// A wait may last longer than its deadline by less than the margin, even after an earlier wait that ended late.
TEST(MpiWatchdogTest, LeavesTheMargin) {
  MpiWatchdog watchdog(0);
  { const MpiWatchdog::Watch late(watchdog, SteadyNow() - absl::Hours(1), "a message from", 1); }
  const MpiWatchdog::Watch running(watchdog, SteadyNow() - absl::Milliseconds(1), "hearing of failures");
  LetItLook();
}

}  // namespace
}  // namespace hooke
