#include "worker/training/rank_zero.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"

namespace hooke {
namespace {

using ::testing::Each;

constexpr absl::Duration kCollectiveTimeout = absl::Seconds(2);

RankZeroCall Call(absl::Duration timeout) {
  RankZeroCall call;
  call.timeout = timeout;
  call.collective_timeout = kCollectiveTimeout;
  return call;
}

// Runs each rank of a group in a thread of its own. Returns their results.
std::vector<absl::Status> OfAllRanks(int ranks, const std::function<absl::Status(Group&)>& run) {
  GroupOptions options;
  options.deadline = kCollectiveTimeout;
  std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(ranks, options);
  std::vector<absl::Status> statuses(groups.size());
  std::vector<std::thread> threads;
  threads.reserve(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = run(*groups[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

// The work may take longer than the limit of a collective. No rank gives up, and afterwards the group can still be
// used.
TEST(InRankZeroTest, TakesLongerThanACollective) {
  const std::vector<absl::Status> statuses = OfAllRanks(3, [](Group& group) {
    RankZeroWork work;
    work.attempt = [](absl::Time) {
      absl::SleepFor(kCollectiveTimeout * 1.5);
      return absl::OkStatus();
    };
    absl::Status status = InRankZero(group, Call(absl::Seconds(20)), work);
    return status.ok() ? group.Barrier() : status;
  });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

// All ranks get the final outcome. After an error that may pass, the work is attempted again; a final error ends it.
TEST(InRankZeroTest, AllLearnTheOutcome) {
  int attempts = 0;
  const std::vector<absl::Status> statuses = OfAllRanks(3, [&attempts](Group& group) {
    RankZeroCall call = Call(absl::Seconds(20));
    call.sleep = [](absl::Duration) {};
    RankZeroWork work;
    work.attempt = [&attempts](absl::Time) {
      return ++attempts < 3 ? absl::UnavailableError("not yet") : absl::AbortedError("replaced");
    };
    return InRankZero(group, call, work);
  });
  EXPECT_EQ(attempts, 3);
  EXPECT_THAT(statuses, Each(absl::AbortedError("replaced")));
}

// If a rank is gone, the work is stopped, and rank 0 then returns the group's error.
TEST(InRankZeroTest, StopsWhenTheGroupFails) {
  absl::Notification stop;
  const std::vector<absl::Status> statuses = OfAllRanks(2, [&stop](Group& group) {
    if (group.rank() != 0) return absl::OkStatus();
    RankZeroWork work;
    work.attempt = [&stop](absl::Time) {
      EXPECT_TRUE(stop.WaitForNotificationWithTimeout(absl::Seconds(30)));
      return absl::UnavailableError("stopped");
    };
    work.stop = [&stop] { stop.Notify(); };
    return InRankZero(group, Call(absl::Seconds(40)), work);
  });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDeadlineExceeded) << statuses[0];
}

}  // namespace
}  // namespace hooke
