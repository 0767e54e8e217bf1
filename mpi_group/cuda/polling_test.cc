// Tests waits that ask again and again whether a device is done. Needs no device.

#include "mpi_group/cuda/polling.h"

#include <gtest/gtest.h>

#include <ctime>

#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

absl::Status Healthy() { return absl::OkStatus(); }

absl::Duration CpuTimeOfThread() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// A short wait does not nap. A longer one naps for a fiftieth of the time, at most 1 ms.
TEST(Polling, NapsGrowWithTheWait) {
  EXPECT_EQ(NapAfter(absl::ZeroDuration()), absl::ZeroDuration());
  EXPECT_EQ(NapAfter(absl::Microseconds(1999)), absl::ZeroDuration());
  EXPECT_EQ(NapAfter(absl::Milliseconds(2)), absl::Microseconds(40));
  EXPECT_EQ(NapAfter(absl::Milliseconds(20)), absl::Microseconds(400));
  EXPECT_EQ(NapAfter(absl::Seconds(20)), absl::Milliseconds(1));
}

// A wait of a second ends at its deadline and leaves the core to others for most of it.
TEST(Polling, LongWaitsDoNotBurnACore) {
  const absl::Duration before = CpuTimeOfThread();
  const absl::Time deadline = SteadyNow() + absl::Seconds(1);
  const absl::Status status = PollUntil(
      deadline, "nobody", [] { return false; }, Healthy);
  EXPECT_EQ(status, absl::DeadlineExceededError("waited for nobody until the deadline"));
  EXPECT_GE(SteadyNow(), deadline);
  EXPECT_LT(CpuTimeOfThread() - before, absl::Milliseconds(250));
}

// It ends when `done` says so, and with the first error of either function.
TEST(Polling, EndsWithTheFirstAnswer) {
  const absl::Time deadline = SteadyNow() + absl::Seconds(60);
  int polls = 0;
  EXPECT_EQ(PollUntil(
                deadline, "it", [&] { return ++polls == 1000; }, Healthy),
            absl::OkStatus());
  EXPECT_EQ(polls, 1000);
  absl::Status bad = absl::InternalError("bad");
  EXPECT_EQ(PollUntil(
                deadline, "it", [&] { return bad; }, Healthy),
            bad);
  EXPECT_EQ(PollUntil(
                deadline, "it", [] { return false; }, [&] { return bad; }),
            bad);
  // A wait that is over from the beginning still says what is wrong.
  EXPECT_EQ(PollUntil(
                SteadyNow() - absl::Seconds(1), "it", [] { return false; }, [&] { return bad; }),
            bad);
}

}  // namespace
}  // namespace hooke
