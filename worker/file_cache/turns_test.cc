// One after another: in order, as long as those before move, and whatever the machine's clock says.

#include "worker/file_cache/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "clocks/test_wall_clock.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

absl::Status GoOn() { return absl::OkStatus(); }

TEST(TurnsTest, EachWaitsForThoseBefore) {
  Turns turns(absl::Minutes(5), SteadyTime);
  std::vector<int> order;  // Only who has its turn uses it.
  ASSERT_TRUE(turns.Take(GoOn).ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    std::atomic<bool> waits{false};
    threads.emplace_back([&, i] {
      EXPECT_TRUE(turns
                      .Take([&waits, first = true]() mutable {
                        if (std::exchange(first, false)) waits = true;
                        return absl::OkStatus();
                      })
                      .ok());
      order.push_back(i);
      turns.End();
    });
    while (!waits) sched_yield();  // It has its ticket.
  }
  EXPECT_TRUE(order.empty());
  turns.End();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

// A thread that hangs at the head of the line holds the others up for a bounded time only. When it goes on, it is not
// in the way of the next ones.
TEST(TurnsTest, GivesUpBehindOneThatStandsStill) {
  std::atomic<int> seconds{0};
  Turns turns(absl::Seconds(60), [&] { return absl::UnixEpoch() + absl::Seconds(seconds.load()); });
  ASSERT_TRUE(turns.Take(GoOn).ok());
  seconds += 60;
  turns.Move();
  seconds += 60;
  int asked = 0;
  const absl::Status status = turns.Take([&] {
    if (++asked == 3) ++seconds;  // Twice it goes on waiting, at 60 s. At 61 s it gives up.
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("have stood still for 1m: see to the disk of this node"));
  EXPECT_EQ(asked, 3);
  turns.End();
  EXPECT_TRUE(turns.Take(GoOn).ok());
  turns.End();
}

TEST(TurnsTest, AStoppedOneLeavesTheLine) {
  Turns turns(absl::Minutes(5), SteadyTime);
  ASSERT_TRUE(turns.Take(GoOn).ok());
  EXPECT_EQ(turns.Take([] { return absl::CancelledError("stopped"); }), absl::CancelledError("stopped"));
  turns.End();
  EXPECT_TRUE(turns.Take(GoOn).ok());
}

TEST(TurnsTest, AClockThatIsSetBackProlongsNoWait) {
  Turns turns(absl::Milliseconds(300), SteadyTime);
  ASSERT_TRUE(turns.Take(GoOn).ok());
  const absl::Time begin = SteadyTime();
  const auto wall = std::chrono::system_clock::now();
  const absl::Status status = turns.Take([] {
    StepWallClock(-absl::Hours(1));
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(std::chrono::system_clock::now(), wall - std::chrono::minutes(50));  // The clock was set.
  EXPECT_LT(SteadyTime() - begin, absl::Minutes(1));
}

}  // namespace
}  // namespace hooke
