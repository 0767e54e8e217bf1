// Processes of a real cluster stop answering. `hooke watch` must say so within seconds, so the test runs alone.

#include <signal.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/faults_fixture.h"
#include "tests/end_to_end/job_text.h"

namespace hooke {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Hooke promises to name a process within ten seconds after it stops answering.
constexpr absl::Duration kSilenceLimit = absl::Seconds(10);

class SilenceTest : public FaultsFixture {
 protected:
  // Waits, at most for kSilenceLimit, until `hooke watch` shows that `what` has not answered. Then checks that the log
  // names `what`, too.
  void ExpectSilence(const std::string& what) {
    const absl::Time begin = absl::Now();
    absl::Notification shown;
    auto watch = cluster_->StartHooke({"watch", id_}, [&](absl::string_view line) {
      if (absl::StrContains(line, what) && absl::StrContains(line, "not answered") && absl::StrContains(line, "step") &&
          !shown.HasBeenNotified()) {
        shown.Notify();
      }
    });
    ASSERT_TRUE(watch.ok()) << watch.status();
    EXPECT_TRUE(shown.WaitForNotificationWithDeadline(begin + kSilenceLimit)) << "hooke watch does not name " << what;
    watch->reset();
    const std::string log = cluster_->Log(id_);
    EXPECT_THAT(log, HasSubstr(what));
    EXPECT_THAT(log, HasSubstr("not answered"));
  }
};

// The coordinator gets SIGKILL during `hooke watch`. Watch reports that the coordinator is away, and goes on within two
// seconds of its return. It never shows a group at step 0. One of three kills must be in time, because other work on
// this machine may delay watch.
TEST_F(SilenceTest, WatchIsBackWithinTwoSecondsOfTheCoordinatorsReturn) {
  constexpr absl::Duration kBackLimit = absl::Seconds(2);
  constexpr absl::Duration kAwayLimit = absl::Seconds(10);
  ClusterOptions options;
  options.server_flags = {"--snapshot-interval=1s"};
  ASSERT_NO_FATAL_FAILURE(StartJob(options, 200, 50));
  std::string took;
  for (int kill = 1; kill <= 3; ++kill) {
    absl::Notification shown, away, back;
    const auto tell = [](absl::Notification& what, bool is) {
      if (is && !what.HasBeenNotified()) what.Notify();
    };
    auto watch = cluster_->StartHooke({"watch", id_}, [&](absl::string_view line) {
      tell(shown, absl::StrContains(line, ": step "));
      tell(away, absl::StrContains(line, "coordinator away since "));
      tell(back, absl::StrContains(line, "coordinator back after "));
      EXPECT_FALSE(absl::StrContains(line, ": step 0/")) << line;
    });
    ASSERT_TRUE(watch.ok()) << watch.status();
    ASSERT_TRUE(shown.WaitForNotificationWithTimeout(kAwayLimit)) << "hooke watch shows no progress";
    cluster_->SignalServer(0, SIGKILL);
    ASSERT_TRUE(away.WaitForNotificationWithTimeout(kAwayLimit)) << "hooke watch does not say that it is away";
    ASSERT_TRUE(cluster_->RestartServer(0).ok());
    const absl::Time returned = absl::Now();
    ASSERT_TRUE(back.WaitForNotificationWithTimeout(kFaultLimit)) << "hooke watch does not come back";
    const absl::Duration wait = absl::Now() - returned;
    watch->reset();
    absl::StrAppend(&took, " ", absl::FormatDuration(wait));
    if (wait <= kBackLimit) break;
    ASSERT_LT(kill, 3) << "back only after" << took;
  }
  RecordProperty("back_after", took);
  EXPECT_EQ(cluster_->Hooke({"cancel", id_}).status, 0);
}

// A rank gets SIGSTOP. `hooke watch` and the log name the rank within ten seconds, with the time and the step. Then the
// collective's deadline ends the group, and the group restarts.
TEST_F(SilenceTest, StoppedRankIsNamedAndReplaced) {
  ClusterOptions options;
  options.worker_flags = {"--collective-timeout=12s"};
  ASSERT_NO_FATAL_FAILURE(StartJob(options, kLongEpochs));
  const auto ranks = cluster_->RankPids(id_, 0);
  ASSERT_THAT(ranks, SizeIs(2));
  kill(ranks[0], SIGSTOP);
  ExpectSilence(absl::StrCat("(pid ", ranks[0], ")"));
  const auto again = cluster_->Await(id_, absl::Seconds(60),
                                     [](const v1::JobStatus& job) { return job.groups(0).incarnation() == 2; });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(cluster_->RankPids(id_, 0), Not(Contains(ranks[0]))) << "the stopped rank was left behind";
}

// A server gets SIGSTOP. `hooke watch` names it within ten seconds while groups go on training. After SIGCONT the job
// goes on and succeeds.
TEST_F(SilenceTest, StoppedServerIsNamedAndTrainingGoesOn) {
  ASSERT_NO_FATAL_FAILURE(StartJob({}, 120));
  cluster_->SignalServer(1, SIGSTOP);
  ExpectSilence(cluster_->server_address(1));
  const auto before = cluster_->Status(id_);
  ASSERT_TRUE(before.ok());
  const uint64_t step = before->groups(0).progress().step();
  const auto after = cluster_->Await(
      id_, kFaultLimit, [&](const v1::JobStatus& job) { return job.groups(0).progress().step() > step + 10; });
  EXPECT_TRUE(after.ok()) << after.status();
  cluster_->SignalServer(1, SIGCONT);
  ExpectSuccess();
}

// The coordinator gets SIGSTOP. `hooke watch` itself reports that, and goes on when the coordinator is back.
TEST_F(SilenceTest, StoppedCoordinatorIsNamedByWatch) {
  ASSERT_NO_FATAL_FAILURE(StartJob({}, kLongEpochs));
  absl::Notification watching;
  absl::Notification shown;
  auto watch = cluster_->StartHooke({"watch", id_}, [&](absl::string_view line) {
    if (!watching.HasBeenNotified()) watching.Notify();
    if (absl::StrContains(line, "coordinator away since ") && !shown.HasBeenNotified()) shown.Notify();
  });
  ASSERT_TRUE(watch.ok()) << watch.status();
  ASSERT_TRUE(watching.WaitForNotificationWithTimeout(kSilenceLimit));
  cluster_->SignalServer(0, SIGSTOP);
  EXPECT_TRUE(shown.WaitForNotificationWithTimeout(kSilenceLimit));
  cluster_->SignalServer(0, SIGCONT);
  EXPECT_TRUE(cluster_->Status(id_).ok());
}

}  // namespace
}  // namespace hooke
