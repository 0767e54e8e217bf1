// Signals kill processes of a real cluster in the middle of a job. The cases run beside other tests and compilers.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/faults_fixture.h"
#include "tests/end_to_end/job_text.h"

namespace hooke {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class FaultsTest : public FaultsFixture {
 protected:
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
    for (const absl::Time end = absl::Now() + kFaultLimit; absl::Now() < end; absl::SleepFor(absl::Milliseconds(10))) {
      const std::set<std::string> now = files();
      if (std::any_of(now.begin(), now.end(), is_new)) return;
    }
    FAIL() << "no snapshot";
  }

  // Waits until group 0 has made so many exchanges after this call. A report is up to half a second old, so the count
  // begins with the next one.
  void AwaitExchanges(uint64_t count) {
    const auto now = cluster_->Status(id_);
    ASSERT_TRUE(now.ok()) << now.status();
    const auto await = [this](uint64_t exchanges) {
      return cluster_->Await(id_, kFaultLimit, [exchanges](const v1::JobStatus& job) {
        return job.groups(0).progress().exchanges() >= exchanges;
      });
    };
    const auto next = await(now->groups(0).progress().exchanges() + 1);
    ASSERT_TRUE(next.ok()) << next.status();
    const auto then = await(next->groups(0).progress().exchanges() + count);
    ASSERT_TRUE(then.ok()) << then.status();
  }

  // Expects that a restarted server loaded its part of the center from its own disk, not from a group.
  void ExpectShardFromSnapshot(int server) {
    EXPECT_THAT(cluster_->ServerOutput(server),
                ContainsRegex(absl::StrCat(id_, ": shard .* loaded from its snapshot")));
  }
};

// One rank gets SIGKILL. Its group restarts from the center, the log gives the reason, and the job succeeds.
TEST_F(FaultsTest, KilledRankRestartsItsGroupFromTheCenter) {
  ASSERT_NO_FATAL_FAILURE(StartJob({}, 60));
  const auto ranks = cluster_->RankPids(id_, 1);
  ASSERT_THAT(ranks, SizeIs(2));
  kill(ranks[0], SIGKILL);
  const auto again =
      cluster_->Await(id_, kFaultLimit, [](const v1::JobStatus& job) { return job.groups(1).incarnation() == 2; });
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSuccess();
  const std::string log = cluster_->Log(id_);
  EXPECT_THAT(log, ContainsRegex(absl::StrCat("group 1 .*pid ", ranks[0], ".*signal 9")));
  EXPECT_THAT(log, ContainsRegex("group 1 trains again, and is at step [0-9]+"));
}

// A worker is drained at once. Its group leaves, and goes on with its own state on the free worker, from the step after
// which it has left. No rank is left on the drained worker. The job succeeds.
TEST_F(FaultsTest, GroupOfADrainedWorkerGoesOnElsewhere) {
  ClusterOptions options;
  options.workers = 3;
  ASSERT_NO_FATAL_FAILURE(StartJob(options, 60));
  const std::string drained = cluster_->Status(id_)->groups(1).worker();
  const ProgramResult said = cluster_->Hooke({"drain", drained, "--now"});
  EXPECT_EQ(said.status, 0) << said.output;
  const auto again =
      cluster_->Await(id_, kFaultLimit, [](const v1::JobStatus& job) { return job.groups(1).incarnation() == 2; });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_NE(again->groups(1).worker(), drained);
  EXPECT_THAT(cluster_->Hooke({"nodes"}).output, ContainsRegex(absl::StrCat("\n", drained, " .* drained .* 0/2 used")));
  ExpectSuccess();
  const std::string log = cluster_->Log(id_);
  EXPECT_THAT(log, ContainsRegex(absl::StrCat("group 1 at step [0-9]+: worker ", drained, " is drained")));
  const std::optional<std::string> left = NumberAfter(log, ": left after step ");
  const std::optional<std::string> from = NumberAfter(log, "group 1 was started again and goes on from step ");
  ASSERT_TRUE(left.has_value() && from.has_value()) << log;
  EXPECT_EQ(*from, *left) << log;
  EXPECT_THAT(log, HasSubstr(absl::StrCat("with its own state of step ", *left)));
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
      cluster_->Await(id_, kFaultLimit, [](const v1::JobStatus& job) { return job.groups(1).incarnation() == 2; });
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
  const auto second = cluster_->AwaitEnd(*waiting, kFaultLimit);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->state(), v1::JOB_STATE_SUCCEEDED) << second->reason();
}

// The server that is not the coordinator gets SIGKILL. Groups go on training without waiting for it. After its restart,
// its shard comes back from the snapshot. The job reports how far the shard went back, and succeeds.
TEST_F(FaultsTest, KilledServerComesBack) {
  ClusterOptions options;
  // The long snapshot interval leaves several exchanges after a snapshot, so some are lost.
  options.server_flags = {"--snapshot-interval=3s"};
  ASSERT_NO_FATAL_FAILURE(StartJob(options, 300, 100));
  ASSERT_NO_FATAL_FAILURE(AwaitSnapshot(1));
  ASSERT_NO_FATAL_FAILURE(AwaitExchanges(10));
  cluster_->SignalServer(1, SIGKILL);
  const auto missed = cluster_->Await(id_, kFaultLimit, [&](const v1::JobStatus& job) {
    const v1::RankProgress& progress = job.groups(0).progress();
    return progress.absent_servers_size() == 1 && progress.absent_servers(0).address() == cluster_->server_address(1);
  });
  ASSERT_TRUE(missed.ok()) << "nobody says that the server is missed: " << missed.status();
  // The first exchange without the server takes longer, and this report may come before its end. So wait for two more
  // exchanges.
  const uint64_t noticed = missed->groups(0).progress().exchanges() + 2;
  const auto first = cluster_->Await(
      id_, kFaultLimit, [&](const v1::JobStatus& job) { return job.groups(0).progress().exchanges() >= noticed; });
  ASSERT_TRUE(first.ok()) << first.status();
  const v1::RankProgress& without = first->groups(0).progress();
  const auto later = cluster_->Await(id_, kFaultLimit, [&](const v1::JobStatus& job) {
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
      id_, kFaultLimit, [&](const v1::JobStatus& job) { return job.groups(0).progress().exchanges() > exchanges + 3; });
  ASSERT_TRUE(resumed.ok()) << "exchanges did not resume: " << resumed.status();
  ExpectShardFromSnapshot(1);
  const auto told = cluster_->Await(id_, kFaultLimit, [](const v1::JobStatus& job) { return job.has_setback(); });
  ASSERT_TRUE(told.ok()) << told.status();
  const std::string setback = absl::StrCat("server ", cluster_->server_address(1),
                                           " came back from its snapshot of [0-9TZ:-]+: parameters .* of the center "
                                           "\\([0-9]+ %\\) went back by [0-9,]+ exchanges?, [0-9.]+ s");
  EXPECT_THAT(told->setback().text(), ContainsRegex(setback));
  EXPECT_THAT(cluster_->Log(id_), ContainsRegex(setback));
  ExpectSuccess();
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
  const auto again = cluster_->Await(id_, kFaultLimit, [&](const v1::JobStatus& job) {
    return job.groups(0).incarnation() == 2 && job.groups(0).state() == v1::GROUP_STATE_RUNNING;
  });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_NE(again->groups(0).worker(), worker);
  const auto now = cluster_->RankPids(id_, 0);
  for (const pid_t rank : ranks) EXPECT_THAT(now, Not(Contains(rank))) << "a rank outlived its daemon";
}

}  // namespace
}  // namespace hooke
