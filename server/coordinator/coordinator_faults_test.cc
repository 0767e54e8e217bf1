// Shows how the coordinator reacts to groups that die, to workers and servers that fall silent or come back, and to its
// own restarts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"
#include "wire/utc_time.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using CoordinatorFaultsTest = CoordinatorFixture;

// A group that dies starts again after a moment with the next incarnation, and log and notices say why.
TEST_F(CoordinatorFaultsTest, StartsADeadGroupAgain) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 40, now_);
  w1.End({id, 0, 1}, absl::AbortedError("rank 1 (pid 7) was killed by signal 9"), now_);
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_WAITING);
  EXPECT_EQ(Status(id).groups(0).reason(),
            "failed (rank 1 (pid 7) was killed by signal 9); starts again in 500ms as start 2");
  w1.Receive(now_);
  EXPECT_EQ(w1.started().size(), 1u);
  Pass(absl::Seconds(1), {&w1});
  ASSERT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}, GroupKey{id, 0, 2}));
  w1.Progress({id, 0, 2}, 32, now_);
  EXPECT_THAT(
      Log(id),
      HasSubstr(
          "group 0 at step 40: failed (rank 1 (pid 7) was killed by signal 9); starts again in 500ms as start 2"));
  EXPECT_THAT(Log(id), HasSubstr("group 0 trains again, and is at step 32 (start 2)"));
  EXPECT_EQ(Status(id).notices_size(), 2);
}

// An error that no new try can mend fails the job with its message and stops the other groups.
TEST_F(CoordinatorFaultsTest, FailsOnWhatCannotBeMended) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 2});
  w1.Receive(now_);
  w2.Receive(now_);
  w1.End({id, 0, 1}, absl::NotFoundError("no file /data/train-images-idx3-ubyte"), now_);
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Status(id).reason(), "group 0 failed at step 0: no file /data/train-images-idx3-ubyte");
  ASSERT_EQ(Status(id).notices_size(), 1);  // The failure gives one notice.
  EXPECT_EQ(Status(id).notices(0).text(), "job failed: " + Status(id).reason());
  EXPECT_EQ(Status(id).groups(1).state(), v1::GROUP_STATE_CANCELLED);
  w2.Receive(now_);
  EXPECT_THAT(w2.stop_reasons(), ElementsAre("the job has ended: failed"));
  EXPECT_TRUE(w2.running().empty());
}

// The last line of a failed job's log is its cause, whatever the groups that were stopped print after the failure. A
// worker that is lost, or a group that does not end, holds the line up for a bounded time.
TEST_F(CoordinatorFaultsTest, LogEndsWithTheCause) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string cause = "coordinator job failed: group 0 failed at step 0: no file /x\n";
  for (const bool worker_is_lost : {false, true}) {
    SCOPED_TRACE(worker_is_lost);
    const std::string id = Submit({2, 2});
    w1.Receive(now_);
    w2.Receive(now_, /*linger=*/true);
    w1.End({id, 0, 1}, absl::NotFoundError("no file /x"), now_);
    EXPECT_THAT(Log(id), testing::EndsWith(cause));
    EXPECT_FALSE(coordinator_->LogIsComplete(id));
    w2.Log({id, 1, 1}, "group 1 rank 0: ended by a signal", now_);
    EXPECT_THAT(Log(id), testing::EndsWith("ended by a signal\n"));
    if (worker_is_lost) {
      Pass(absl::Seconds(11), {&w1});
    } else {
      w2.Receive(now_);
    }
    EXPECT_THAT(Log(id), testing::EndsWith(cause));
    EXPECT_TRUE(coordinator_->LogIsComplete(id));
  }

  FakeWorker w3("w3", 2);
  ASSERT_TRUE(w3.Connect(*coordinator_, now_).ok());
  const std::string stuck = Submit({2, 2});
  w1.Receive(now_);
  w3.Receive(now_, /*linger=*/true);
  w1.End({stuck, 0, 1}, absl::NotFoundError("no file /x"), now_);
  EXPECT_FALSE(coordinator_->LogIsComplete(stuck));
  for (int second = 0; second < 31; ++second) {
    Pass(absl::Seconds(1), {&w1});
    w3.Heartbeat(now_);
  }
  EXPECT_TRUE(coordinator_->LogIsComplete(stuck));
  EXPECT_THAT(Log(stuck), testing::EndsWith(cause));
}

// The cause is also the last line if the coordinator restarted while a group of the failed job still ran.
TEST_F(CoordinatorFaultsTest, LogEndsWithTheCauseAfterARestart) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 2});
  w1.Receive(now_);
  w2.Receive(now_, /*linger=*/true);
  w1.End({id, 0, 1}, absl::NotFoundError("no file /x"), now_);
  w1.Disconnect(now_);
  w2.Disconnect(now_);
  Restart();
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  EXPECT_FALSE(coordinator_->LogIsComplete(id));
  w2.Log({id, 1, 1}, "group 1 rank 0: ended by a signal", now_);
  EXPECT_THAT(Log(id), testing::EndsWith("ended by a signal\n"));
  w2.Receive(now_);
  EXPECT_THAT(Log(id), testing::EndsWith("coordinator job failed: group 0 failed at step 0: no file /x\n"));
  EXPECT_TRUE(coordinator_->LogIsComplete(id));
}

// A group that gives up because of a missing server is tried again without a limit. A group whose ranks die without a
// report is tried only a limited number of times, though its daemon and the other ranks report UNAVAILABLE too.
TEST_F(CoordinatorFaultsTest, WaitsForServersButNotForCrashLoops) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const auto fail = [&](const std::string& id, const absl::Status& said, const std::string& server) {
    Pass(absl::Seconds(31), {&w1});
    if (w1.running().empty()) return;
    const GroupKey key = w1.started().back();
    EXPECT_EQ(key.job_id, id);
    w1.Failed(key, said, server, now_);
    w1.End(key, absl::UnavailableError("rank 0 (pid 1): " + std::string(said.message())), now_);
  };
  const std::string waits = Submit({1, 2});
  for (int i = 0; i < 30; ++i) fail(waits, absl::UnavailableError("server b:1: connection refused"), "b:1");
  EXPECT_EQ(Status(waits).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(w1.started().size(), 30u);
  EXPECT_EQ(Status(waits).groups(0).reason(),
            "failed (rank 0 (pid 1): server b:1: connection refused); starts again in 30s as start 31, after 30 "
            "failures in a row");
  ASSERT_TRUE(coordinator_->Cancel(waits, now_).ok());

  const std::string crashes = Submit({1, 2});
  for (int i = 0; i < 30; ++i)
    fail(crashes, absl::UnavailableError("waited for rank 1, which spoke to b:1 and has left"), "");
  EXPECT_EQ(Status(crashes).state(), v1::JOB_STATE_HELD);
  EXPECT_EQ(w1.started().size(), 33u);
}

// A silent worker is reported after 4 s. After the worker's lease its group runs elsewhere. When the worker comes back,
// it must stop the old incarnation.
TEST_F(CoordinatorFaultsTest, MovesTheGroupsOfASilentWorker) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 17, now_);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string since = UtcText(now_.wall);
  Pass(absl::Seconds(4), {&w2});
  ASSERT_EQ(Status(id).groups(0).silences_size(), 1);
  EXPECT_EQ(Status(id).groups(0).silences(0).what(), "worker w1");
  EXPECT_EQ(Status(id).groups(0).silences(0).step(), 17u);
  EXPECT_THAT(Log(id), HasSubstr(absl::StrCat("worker w1 has not answered since ", since, "; group 0 was at step 17")));
  EXPECT_TRUE(w2.started().empty());
  Pass(absl::Seconds(6), {&w2});
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{id, 0, 2}));
  w1.Receive(now_);
  EXPECT_FALSE(w1.connected());  // Its session was ended.
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  w1.Receive(now_);
  EXPECT_THAT(w1.stop_reasons(), ElementsAre("start 1 was replaced by start 2"));
  EXPECT_EQ(Status(id).groups(0).worker(), "w2");
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_STARTING);
}

// If a worker's stream breaks and the worker is back within its lease, it keeps its groups. Users are told that it
// answers again.
TEST_F(CoordinatorFaultsTest, KeepsTheGroupsOfAWorkerThatIsSoonBack) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Disconnect(now_);
  Pass(absl::Seconds(6), {});
  EXPECT_EQ(Status(id).groups(0).silences_size(), 1);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(20), {&w1});
  EXPECT_EQ(w1.started().size(), 1u);
  EXPECT_EQ(Status(id).groups(0).silences_size(), 0);
  EXPECT_THAT(Log(id), HasSubstr("worker w1 answers again"));
}

// A restarted coordinator waits for the workers of running groups, for the length of a lease. It takes over the groups
// and events that they report, and the jobs go on.
TEST_F(CoordinatorFaultsTest, AdoptsAfterARestart) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 3, now_);
  const std::string waiting = Submit({1, 2});
  w1.Disconnect(now_);
  // The worker is not connected, so it sends the end after the restart.
  w1.End({id, 0, 1}, absl::OkStatus(), now_);
  Restart();
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_RUNNING);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(8), {&w2});
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{waiting, 0, 1}));
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_EVALUATING);
  Pass(absl::Seconds(1), {&w1, &w2});
  EXPECT_EQ(w1.unseen(), 0u);
}

// What was shown of groups that have ended is shown after a restart, too: how far they came, and how much of the job
// was done.
TEST_F(CoordinatorFaultsTest, EndedGroupsStillShowHowFarTheyCame) {
  FakeWorker w1("w1", 4);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string ended = Submit({1, 2});
  const std::string cancelled = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({ended, 0, 1}, 3, now_);
  w1.End({ended, 0, 1}, absl::OkStatus(), now_);
  w1.Progress({cancelled, 0, 1}, 2, now_);
  ASSERT_TRUE(coordinator_->Cancel(cancelled, now_).ok());
  Pass(absl::Seconds(1), {&w1});
  const v1::JobStatus before[] = {Status(ended), Status(cancelled)};
  ASSERT_EQ(before[0].groups(0).progress().step(), 3u);
  ASSERT_EQ(before[1].groups(0).progress().step(), 2u);
  const std::vector<JobRow> rows = coordinator_->RowsSince(0, 10).rows;
  Restart();
  for (const v1::JobStatus& job : before) {
    EXPECT_EQ(Status(job.job_id()).groups(0).progress().DebugString(), job.groups(0).progress().DebugString());
  }
  const std::vector<JobRow> again = coordinator_->RowsSince(0, 10).rows;
  ASSERT_EQ(again.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(again[i].done, rows[i].done);
}

// If the worker does not come back within a lease after the restart, its group is placed again.
TEST_F(CoordinatorFaultsTest, GivesUpOnWorkersThatDoNotReturn) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  Restart();
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(9), {&w2});
  EXPECT_TRUE(w2.started().empty());
  Pass(absl::Seconds(2), {&w2});
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{id, 0, 2}));
}

// If a start is lost with its stream, the worker's next heartbeat shows it, and the group starts as a new incarnation.
TEST_F(CoordinatorFaultsTest, FindsOutLostStarts) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Disconnect(now_);  // Before it received anything.
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  w1.Receive(now_);
  EXPECT_TRUE(w1.started().empty());
  w1.Heartbeat(now_);
  w1.Receive(now_);
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 2}));
}

// A daemon that died and was started again under its name has lost its groups. They start again at once.
TEST_F(CoordinatorFaultsTest, RestartsTheGroupsOfADaemonThatDied) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Crash(now_);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Milliseconds(500), {&w1});
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}, GroupKey{id, 0, 2}));
}

// A group that takes its daemon along waits longer each time, and the log says when it starts again and how often it
// failed. After ten times without a new step the job fails. A new step begins the row anew.
TEST_F(CoordinatorFaultsTest, BacksOffFromAGroupThatTakesItsDaemonAlong) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  const auto die = [&] {
    w1.Crash(now_);
    ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
    w1.Heartbeat(now_);  // After this heartbeat, a group that the worker does not run counts as lost.
    w1.Receive(now_);
  };
  die();
  ASSERT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}, GroupKey{id, 0, 2}));  // At once.
  EXPECT_THAT(Log(id), HasSubstr("group 0 at step 0: lost (worker w1 does not run it any more); starts again at once "
                                 "as start 2"));
  w1.Progress({id, 0, 2}, 5, now_);
  die();
  EXPECT_EQ(w1.started().size(), 3u);  // At once: it had made a new step.
  for (const double seconds : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0}) {
    const size_t before = w1.started().size();
    die();
    Pass(absl::Seconds(seconds - 0.5), {&w1});
    EXPECT_EQ(w1.started().size(), before) << seconds;
    Pass(absl::Milliseconds(500), {&w1});
    EXPECT_EQ(w1.started().size(), before + 1) << seconds;
  }
  EXPECT_THAT(
      Log(id),
      HasSubstr(
          "lost (worker w1 does not run it any more); starts again in 30s as start 11, after 9 failures in a row"));
  die();
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Status(id).reason(),
            "group 0 failed 10 times in a row without a new step; the last time: lost, for worker w1 does not run it "
            "any more; see whether that node has enough memory and a steady network, then submit the job again");
}

// A second daemon with the same name is refused while the first one lives, and accepted after that.
TEST_F(CoordinatorFaultsTest, RefusesASecondWorkerOfAName) {
  FakeWorker w1("w1", 2), other("w1", 4, "cloud");
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  other.Crash(now_);  // The next hello comes from a new process, so its instance is not that of w1.
  const absl::Status status = other.Connect(*coordinator_, now_);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(),
            "a worker named w1 is connected already (site hpc): give this one another name with --name");
  w1.Disconnect(now_);
  EXPECT_TRUE(other.Connect(*coordinator_, now_).ok());
}

// An event that arrives twice counts once, and is acknowledged again.
TEST_F(CoordinatorFaultsTest, EventsCountOnce) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.End({id, 0, 1}, absl::UnavailableError("x"), now_);
  w1.Repeat(now_);
  w1.Repeat(now_);
  Pass(absl::Seconds(1), {&w1});
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}, GroupKey{id, 0, 2}));
  EXPECT_EQ(w1.unseen(), 0u);
}

// A rank that its daemon reports as silent is shown in the status and the log until it answers again.
TEST_F(CoordinatorFaultsTest, ShowsSilentRanks) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 57, now_);
  w1.Silence({id, 0, 1}, true, now_);
  ASSERT_EQ(Status(id).groups(0).silences_size(), 1);
  EXPECT_EQ(Status(id).groups(0).silences(0).what(), "rank 1 (pid 1234)");
  EXPECT_THAT(Log(id), HasSubstr("group 0: rank 1 (pid 1234) has not answered since 1970-01-12T13:46:40Z, at step 57"));
  w1.Silence({id, 0, 1}, false, now_);
  EXPECT_EQ(Status(id).groups(0).silences_size(), 0);
}

// A server that stops its heartbeats is shown within 5 s, with the step, in the status of each job that uses it. Its
// return is shown there too.
TEST_F(CoordinatorFaultsTest, ShowsSilentServers) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 9, now_);
  Pass(absl::Seconds(5), {&w1}, /*server_lives=*/false);
  ASSERT_EQ(Status(id).groups(0).silences_size(), 1);
  EXPECT_EQ(Status(id).groups(0).silences(0).what(), "server b:1");
  EXPECT_THAT(Log(id),
              HasSubstr("server b:1 has not answered since 1970-01-12T13:46:40Z; the furthest group is at step 9"));
  EXPECT_FALSE(coordinator_->Nodes(now_)[0].alive());
  Heartbeat("b:1");
  EXPECT_EQ(Status(id).groups(0).silences_size(), 0);
  EXPECT_THAT(Log(id), HasSubstr("server b:1 answers again"));
}

// A silent server that an unfinished job uses stays known. A group of that job that starts meanwhile shows the server
// as silent. A silent server that no job uses is forgotten after an hour.
TEST_F(CoordinatorFaultsTest, KeepsTheSilentServersOfRunningJobs) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  Heartbeat("unused:1");
  w1.Receive(now_);
  Pass(absl::Hours(1) + absl::Seconds(1), {&w1}, /*server_lives=*/false);
  ASSERT_EQ(coordinator_->Nodes(now_).size(), 2u);
  EXPECT_EQ(coordinator_->Nodes(now_)[0].name(), "b:1");
  w1.End({id, 0, 1}, absl::AbortedError("a rank died"), now_);
  Pass(absl::Seconds(1), {&w1}, /*server_lives=*/false);
  ASSERT_EQ(w1.started().size(), 2u);
  ASSERT_EQ(Status(id).groups(0).silences_size(), 1);
  EXPECT_EQ(Status(id).groups(0).silences(0).what(), "server b:1");
  EXPECT_EQ(Status(id).groups(0).silences(0).since_unix_ms(), 1000000000);
  Heartbeat("b:1");
  EXPECT_EQ(Status(id).groups(0).silences_size(), 0);
}

// A coordinator that was stopped for a minute (SIGSTOP, a laptop's lid) takes no worker or server for lost when it goes
// on.
TEST_F(CoordinatorFaultsTest, ItsOwnPauseIsNobodysSilence) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Submit({1, 2});
  w1.Receive(now_);
  coordinator_->Tick(now_);
  now_ += absl::Seconds(60);
  coordinator_->Tick(now_);
  Pass(absl::Seconds(20), {&w1});
  EXPECT_EQ(w1.started().size(), 1u);
}

// Right after a restart, a new job gets no server that is known only from stored jobs.
TEST_F(CoordinatorFaultsTest, GivesJobsOnlyServersThatWereHeard) {
  FakeWorker w1("w1", 4);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Heartbeat("dead:1");
  const std::string first = Submit({1, 2});
  EXPECT_EQ(Status(first).servers_size(), 2);
  w1.Receive(now_);
  w1.Disconnect(now_);
  Restart();
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  EXPECT_THAT(Status(Submit({1, 2})).servers(), ElementsAre("b:1"));
}

}  // namespace
}  // namespace hooke
