// Faults on a real cluster: signals kill and stop processes in the middle of a job.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/job_text.h"

namespace hooke {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::Duration kJobLimit = absl::Seconds(120);
// Hooke promises to name a process within ten seconds after it stops answering.
constexpr absl::Duration kSilenceLimit = absl::Seconds(10);

class FaultsTest : public ::testing::Test {
 protected:
  // Starts a cluster and a job of two groups, and waits until each group has made `steps` steps.
  void StartJob(const ClusterOptions& options, int epochs, uint64_t steps = 20) {
    auto cluster = Cluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/train", 4000, 1).ok());
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/test", 500, 2).ok());
    JobText job;
    job.data = cluster_->folder();
    job.epochs = epochs;
    if (!averaging_.empty()) job.averaging = averaging_;
    const auto id = cluster_->Submit(ToYaml(job));
    ASSERT_TRUE(id.ok()) << id.status();
    id_ = *id;
    AwaitSteps(steps);
  }

  void AwaitSteps(uint64_t steps) {
    const auto status = cluster_->Await(id_, kJobLimit, [&](const v1::JobStatus& job) {
      return job.groups_size() == 2 &&
             std::all_of(job.groups().begin(), job.groups().end(), [&](const v1::GroupStatus& group) {
               return group.state() == v1::GROUP_STATE_RUNNING && group.progress().step() >= steps;
             });
    });
    ASSERT_TRUE(status.ok()) << status.status();
    ASSERT_EQ(status->state(), v1::JOB_STATE_RUNNING) << status->reason() << cluster_->Log(id_);
  }

  void ExpectSuccess() {
    const auto end = cluster_->AwaitEnd(id_, kJobLimit);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(end->state(), v1::JOB_STATE_SUCCEEDED) << end->reason() << "\n" << cluster_->Log(id_);
    EXPECT_GT(end->center().accuracy(), 0.9);
  }

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

  // Waits until the server has written a new snapshot.
  void AwaitSnapshot(int server) {
    const auto files = [&] {
      std::set<std::string> names;
      std::error_code error;  // Ignored: a snapshot may be removed meanwhile.
      for (std::filesystem::directory_iterator it(cluster_->folder() + absl::StrCat("/server", server, "/centers"),
                                                  error);
           !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
        if (it->path().extension() == ".snapshot") names.insert(it->path().filename());
      }
      return names;
    };
    const std::set<std::string> before = files();
    const auto is_new = [&before](const std::string& name) { return before.count(name) == 0; };
    for (const absl::Time end = absl::Now() + kJobLimit; absl::Now() < end; absl::SleepFor(absl::Milliseconds(10))) {
      const std::set<std::string> now = files();
      if (std::any_of(now.begin(), now.end(), is_new)) return;
    }
    FAIL() << "no snapshot";
  }

  // Expects that a restarted server loaded its part of the center from its own disk, not from a group.
  void ExpectShardFromSnapshot(int server) {
    EXPECT_THAT(cluster_->ServerOutput(server),
                ContainsRegex(absl::StrCat(id_, ": shard .* loaded from its snapshot")));
  }

  std::unique_ptr<Cluster> cluster_;
  std::string id_;
  std::string averaging_;  // The job's `averaging` section. Empty: elastic.
};

// One rank gets SIGKILL. Its group restarts from the center, the log gives the reason, and the job succeeds.
TEST_F(FaultsTest, KilledRankRestartsItsGroupFromTheCenter) {
  ASSERT_NO_FATAL_FAILURE(StartJob({}, 60));
  const auto ranks = cluster_->RankPids(id_, 1);
  ASSERT_THAT(ranks, SizeIs(2));
  kill(ranks[0], SIGKILL);
  const auto again =
      cluster_->Await(id_, kJobLimit, [](const v1::JobStatus& job) { return job.groups(1).incarnation() == 2; });
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSuccess();
  const std::string log = cluster_->Log(id_);
  EXPECT_THAT(log, ContainsRegex(absl::StrCat("group 1 .*pid ", ranks[0], ".*signal 9")));
  EXPECT_THAT(log, ContainsRegex("group 1 trains again, and is at step [0-9]+"));
}

// One rank of a job with synchronous SGD gets SIGKILL. Its group restarts. The other group does not hang in a round and
// is not restarted, and the job succeeds.
TEST_F(FaultsTest, KilledGroupDoesNotHangTheRounds) {
  averaging_ = "{rule: sync, grace_seconds: 2}";
  ASSERT_NO_FATAL_FAILURE(StartJob({}, 20));
  const auto ranks = cluster_->RankPids(id_, 1);
  ASSERT_THAT(ranks, SizeIs(2));
  kill(ranks[0], SIGKILL);
  const auto again =
      cluster_->Await(id_, kJobLimit, [](const v1::JobStatus& job) { return job.groups(1).incarnation() == 2; });
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSuccess();
  const auto end = cluster_->Status(id_);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->groups(0).incarnation(), 1u) << "the other group was lost, too:\n" << cluster_->Log(id_);
}

// The coordinator, which is also a server, gets SIGKILL in the middle of a job and is restarted. Running groups go on,
// and the center comes back from its snapshot. Jobs that were submitted before are still there. Both jobs succeed.
TEST_F(FaultsTest, KilledCoordinatorComesBackAndTheJobSucceeds) {
  ClusterOptions options;
  options.server_flags = {"--snapshot-interval=1s"};
  ASSERT_NO_FATAL_FAILURE(StartJob(options, 60, 100));
  const auto waiting = cluster_->Submit(ToYaml({cluster_->folder(), 1, 2, 2}));
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  cluster_->SignalServer(0, SIGKILL);
  ASSERT_TRUE(cluster_->RestartServer(0).ok());
  ExpectSuccess();
  const auto end = cluster_->Status(id_);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->groups(0).incarnation(), 1u) << "a running group was lost with the coordinator:\n"
                                              << cluster_->Log(id_);
  ExpectShardFromSnapshot(0);
  const auto second = cluster_->AwaitEnd(*waiting, kJobLimit);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->state(), v1::JOB_STATE_SUCCEEDED) << second->reason();
}

// The coordinator gets SIGKILL during `hooke watch`. Watch reports that the coordinator is away, and goes on within two
// seconds of its return. It never shows a group at step 0. One of three kills must be in time, because other work on
// this machine may delay watch.
TEST_F(FaultsTest, WatchIsBackWithinTwoSecondsOfTheCoordinatorsReturn) {
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
    ASSERT_TRUE(back.WaitForNotificationWithTimeout(kJobLimit)) << "hooke watch does not come back";
    const absl::Duration wait = absl::Now() - returned;
    watch->reset();
    absl::StrAppend(&took, " ", absl::FormatDuration(wait));
    if (wait <= kBackLimit) break;
    ASSERT_LT(kill, 3) << "back only after" << took;
  }
  RecordProperty("back_after", took);
  EXPECT_EQ(cluster_->Hooke({"cancel", id_}).status, 0);
}

// The server that is not the coordinator gets SIGKILL. Groups go on training without waiting for it. After its restart,
// its shard comes back from the snapshot. The job reports how far the shard went back, and succeeds.
TEST_F(FaultsTest, KilledServerComesBack) {
  ClusterOptions options;
  // The long snapshot interval leaves several exchanges after a snapshot, so some are lost.
  options.server_flags = {"--snapshot-interval=3s"};
  ASSERT_NO_FATAL_FAILURE(StartJob(options, 150, 100));
  ASSERT_NO_FATAL_FAILURE(AwaitSnapshot(1));
  const auto saved = cluster_->Status(id_);
  ASSERT_TRUE(saved.ok()) << saved.status();
  const uint64_t lost = saved->groups(0).progress().exchanges() + 5;
  ASSERT_TRUE(cluster_
                  ->Await(id_, kJobLimit,
                          [&](const v1::JobStatus& job) { return job.groups(0).progress().exchanges() >= lost; })
                  .ok());
  cluster_->SignalServer(1, SIGKILL);
  const auto missed = cluster_->Await(id_, kJobLimit, [&](const v1::JobStatus& job) {
    const v1::RankProgress& progress = job.groups(0).progress();
    return progress.absent_servers_size() == 1 && progress.absent_servers(0).address() == cluster_->server_address(1);
  });
  ASSERT_TRUE(missed.ok()) << "nobody says that the server is missed: " << missed.status();
  // The first exchange without the server takes longer, and this report may come before its end. So wait for two more
  // exchanges.
  const uint64_t noticed = missed->groups(0).progress().exchanges() + 2;
  const auto first = cluster_->Await(
      id_, kJobLimit, [&](const v1::JobStatus& job) { return job.groups(0).progress().exchanges() >= noticed; });
  ASSERT_TRUE(first.ok()) << first.status();
  const v1::RankProgress& without = first->groups(0).progress();
  const auto later = cluster_->Await(id_, kJobLimit, [&](const v1::JobStatus& job) {
    return job.groups(0).progress().exchanges() >= without.exchanges() + 30;
  });
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_GE(later->groups(0).progress().exchange_failures(), without.exchange_failures() + 29);
  // A group that waited for the server would take half a second for each exchange.
  const double seconds = later->groups(0).progress().exchange_seconds() - without.exchange_seconds();
  EXPECT_LT(seconds / static_cast<double>(later->groups(0).progress().exchanges() - without.exchanges()), 0.1);
  ASSERT_TRUE(cluster_->RestartServer(1).ok());
  const auto back = cluster_->Status(id_);
  ASSERT_TRUE(back.ok()) << back.status();
  const uint64_t exchanges = back->groups(0).progress().exchanges();
  const auto resumed = cluster_->Await(
      id_, kJobLimit, [&](const v1::JobStatus& job) { return job.groups(0).progress().exchanges() > exchanges + 3; });
  ASSERT_TRUE(resumed.ok()) << "exchanges did not resume: " << resumed.status();
  ExpectShardFromSnapshot(1);
  const auto told = cluster_->Await(id_, kJobLimit, [](const v1::JobStatus& job) { return job.has_setback(); });
  ASSERT_TRUE(told.ok()) << told.status();
  const std::string setback = absl::StrCat("server ", cluster_->server_address(1),
                                           " came back from its snapshot of [0-9TZ:-]+: parameters .* of the center "
                                           "\\([0-9]+ %\\) went back by [0-9,]+ exchanges?, [0-9.]+ s");
  EXPECT_THAT(told->setback().text(), ContainsRegex(setback));
  EXPECT_THAT(cluster_->Log(id_), ContainsRegex(setback));
  ExpectSuccess();
}

// A rank gets SIGSTOP. `hooke watch` and the log name the rank within ten seconds, with the time and the step. Then the
// collective's deadline ends the group, and the group restarts.
TEST_F(FaultsTest, StoppedRankIsNamedAndReplaced) {
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
TEST_F(FaultsTest, StoppedServerIsNamedAndTrainingGoesOn) {
  ASSERT_NO_FATAL_FAILURE(StartJob({}, 120));
  cluster_->SignalServer(1, SIGSTOP);
  ExpectSilence(cluster_->server_address(1));
  const auto before = cluster_->Status(id_);
  ASSERT_TRUE(before.ok());
  const uint64_t step = before->groups(0).progress().step();
  const auto after = cluster_->Await(
      id_, kJobLimit, [&](const v1::JobStatus& job) { return job.groups(0).progress().step() > step + 10; });
  EXPECT_TRUE(after.ok()) << after.status();
  cluster_->SignalServer(1, SIGCONT);
  ExpectSuccess();
}

// The coordinator gets SIGSTOP. `hooke watch` itself reports that, and goes on when the coordinator is back.
TEST_F(FaultsTest, StoppedCoordinatorIsNamedByWatch) {
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

// A worker gets SIGKILL. Its ranks end with it, and its group restarts on another worker.
TEST_F(FaultsTest, KilledWorkersGroupMovesToAnother) {
  ClusterOptions options;
  options.workers = 3;
  ASSERT_NO_FATAL_FAILURE(StartJob(options, kLongEpochs));
  const auto status = cluster_->Status(id_);
  ASSERT_TRUE(status.ok());
  const std::string worker = status->groups(0).worker();
  const auto ranks = cluster_->RankPids(id_, 0);
  cluster_->SignalWorker(worker.back() - '0', SIGKILL);
  const auto again = cluster_->Await(id_, absl::Seconds(60), [&](const v1::JobStatus& job) {
    return job.groups(0).incarnation() == 2 && job.groups(0).state() == v1::GROUP_STATE_RUNNING;
  });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_NE(again->groups(0).worker(), worker);
  const auto now = cluster_->RankPids(id_, 0);
  for (const pid_t rank : ranks) EXPECT_THAT(now, Not(Contains(rank))) << "a rank outlived its daemon";
}

}  // namespace
}  // namespace hooke
