#include "server/coordinator/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "server/coordinator/example_job.h"
#include "server/coordinator/fake_worker.h"
#include "server/coordinator/job_log.h"
#include "server/coordinator/job_store.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Time is what Pass makes of it; all is one thread.
class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    Restart();
  }
  ~CoordinatorTest() override { std::filesystem::remove_all(folder_); }

  // Another coordinator, from what is stored.
  void Restart() {
    coordinator_.reset();
    CoordinatorOptions options;
    options.store = store_;
    options.log = std::make_shared<JobLog>(*JobLog::Open({folder_}));
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    coordinator_ = *Coordinator::Create(std::move(options), now_);
    coordinator_->SetOwnServer("b:1");
    Heartbeat("b:1");
  }

  void Heartbeat(const std::string& address) {
    v1::ServerHeartbeatRequest request;
    request.set_address(address);
    ASSERT_TRUE(coordinator_->ServerHeartbeat(request, now_).ok());
  }

  // Lets time pass; `alive` workers and server b:1 send their heartbeats, and workers obey.
  void Pass(absl::Duration time, const std::vector<FakeWorker*>& alive, bool server_lives = true) {
    const absl::Time end = now_ + time;
    while (now_ < end) {
      now_ += absl::Milliseconds(500);
      if (server_lives) Heartbeat("b:1");
      for (FakeWorker* worker : alive) worker->Heartbeat(now_);
      coordinator_->Tick(now_);
      for (FakeWorker* worker : alive) worker->Receive(now_);
    }
  }

  std::string Submit(ExampleGroups groups = {}) {
    absl::StatusOr<std::string> id =
        coordinator_->Submit(ExampleSubmission(absl::StrCat("s", ++submissions_), groups), now_);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }

  v1::JobStatus Status(const std::string& job_id) { return *coordinator_->Status(job_id, now_); }
  std::string Log(const std::string& job_id) { return coordinator_->ReadLog(job_id, 0, 1 << 20)->text; }

  const std::string folder_;
  absl::Time now_ = absl::FromUnixSeconds(1000000);
  std::shared_ptr<InMemoryJobStore> store_ = std::make_shared<InMemoryJobStore>();
  std::unique_ptr<Coordinator> coordinator_;
  int submissions_ = 0;
};

// The life of a job: queued with a reason, groups placed and running, all finished, the center evaluated, succeeded.
TEST_F(CoordinatorTest, TakesAJobFromSubmitToSuccess) {
  const std::string id = Submit({2, 2});
  EXPECT_EQ(id, "fashion-1");
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Status(id).reason(), "no worker has joined");

  Heartbeat("a:1");
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  w1.Receive(now_);
  w2.Receive(now_);
  ASSERT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}));
  ASSERT_THAT(w2.started(), ElementsAre(GroupKey{id, 1, 1}));
  const v1::StartGroup& start = w1.running().at({id, 0, 1}).start;
  EXPECT_EQ(start.ranks(), 2u);
  EXPECT_EQ(start.group().task(), v1::GroupStart::TRAIN);
  EXPECT_THAT(start.group().servers(), ElementsAre("b:1", "a:1"));  // The coordinator's own first.
  EXPECT_EQ(start.group().job_key(), "s1");                         // The submission's id.
  EXPECT_EQ(start.group().job().ShortDebugString(), ExampleJob({2, 2}).ShortDebugString());

  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_STARTING);
  EXPECT_EQ(Status(id).first_step_unix_ms(), 0);
  now_ += absl::Seconds(1);
  w1.Progress({id, 0, 1}, 5, now_);
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_RUNNING);
  EXPECT_EQ(Status(id).groups(0).progress().step(), 5u);
  EXPECT_EQ(Status(id).first_step_unix_ms(), absl::ToUnixMillis(now_));

  w1.End({id, 0, 1}, absl::OkStatus(), now_);
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  w2.End({id, 1, 1}, absl::OkStatus(), now_);
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_EVALUATING);
  ASSERT_EQ(Status(id).groups_size(), 3);
  w1.Receive(now_);
  ASSERT_EQ(w1.started().size(), 2u);
  EXPECT_EQ(w1.running().at({id, 2, 1}).start.group().task(), v1::GroupStart::EVALUATE);
  w1.Evaluated({id, 2, 1}, 0.912, now_);
  w1.End({id, 2, 1}, absl::OkStatus(), now_);
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Status(id).center().accuracy(), 0.912);
  EXPECT_EQ(Status(id).groups_size(), 2);
  EXPECT_GT(Status(id).ended_unix_ms(), 0);
  EXPECT_THAT(Log(id), HasSubstr("coordinator center test accuracy 91.20 %"));
  EXPECT_THAT(Log(id), HasSubstr("coordinator job succeeded"));
  w1.Receive(now_);
  w2.Receive(now_);
  EXPECT_EQ(w1.unseen() + w2.unseen(), 0u);
}

// The same submission again, also of another coordinator after a restart, is the same job.
TEST_F(CoordinatorTest, SubmitsOnce) {
  const v1::SubmitRequest request = ExampleSubmission("once");
  EXPECT_EQ(*coordinator_->Submit(request, now_), "fashion-1");
  EXPECT_EQ(*coordinator_->Submit(request, now_), "fashion-1");
  Restart();
  EXPECT_EQ(*coordinator_->Submit(request, now_), "fashion-1");
  EXPECT_EQ(*coordinator_->Submit(ExampleSubmission("twice"), now_), "fashion-2");
  EXPECT_EQ(coordinator_->List(now_).size(), 2u);
  EXPECT_EQ(coordinator_->List(now_)[0].job_id(), "fashion-2");
}

// A job that cannot be stored is refused and does not exist; the same submission goes through when the disk is well
// again.
TEST_F(CoordinatorTest, AcknowledgesOnlyWhatIsStored) {
  store_->FailWith(absl::ResourceExhaustedError("the disk is full"));
  const absl::Status status = coordinator_->Submit(ExampleSubmission("s"), now_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the job could not be stored: the disk is full");
  EXPECT_TRUE(coordinator_->List(now_).empty());
  store_->FailWith(absl::OkStatus());
  EXPECT_TRUE(coordinator_->Submit(ExampleSubmission("s"), now_).ok());
}

// No group is started on the strength of something that is not stored: else a restart could start its incarnation
// again.
TEST_F(CoordinatorTest, SendsNothingThatIsNotStored) {
  FakeWorker w1("w1", 2);
  const std::string id = Submit({1, 2});
  store_->FailWith(absl::InternalError("broken disk"));
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(3), {&w1});
  EXPECT_TRUE(w1.started().empty());
  EXPECT_EQ(coordinator_->Cancel(id, now_).status(), absl::InternalError("done, but not stored yet: broken disk"));
  store_->FailWith(absl::OkStatus());
  Pass(absl::Seconds(2), {&w1});
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}));
  EXPECT_TRUE(w1.running().empty());  // Started and stopped, in this order.
}

// A group that dies starts again after a moment with the next incarnation, and log and notices say why.
TEST_F(CoordinatorTest, StartsADeadGroupAgain) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 40, now_);
  w1.End({id, 0, 1}, absl::AbortedError("rank 1 (pid 7) was killed by signal 9"), now_);
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_WAITING);
  EXPECT_EQ(Status(id).groups(0).reason(),
            "failed (rank 1 (pid 7) was killed by signal 9); starts again in 500ms, attempt 2");
  w1.Receive(now_);
  EXPECT_EQ(w1.started().size(), 1u);
  Pass(absl::Seconds(1), {&w1});
  ASSERT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}, GroupKey{id, 0, 2}));
  w1.Progress({id, 0, 2}, 32, now_);
  EXPECT_THAT(
      Log(id),
      HasSubstr(
          "group 0 at step 40: failed (rank 1 (pid 7) was killed by signal 9); starts again in 500ms, attempt 2"));
  EXPECT_THAT(Log(id), HasSubstr("group 0 goes on from the center at step 32 (incarnation 2)"));
  EXPECT_EQ(Status(id).notices_size(), 2);
}

// An error that no new try can mend fails the job with its message and stops the other groups.
TEST_F(CoordinatorTest, FailsOnWhatCannotBeMended) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 2});
  w1.Receive(now_);
  w2.Receive(now_);
  w1.End({id, 0, 1}, absl::NotFoundError("no file /data/train-images-idx3-ubyte"), now_);
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Status(id).reason(), "group 0 failed at step 0: no file /data/train-images-idx3-ubyte");
  ASSERT_EQ(Status(id).notices_size(), 1);  // Said once.
  EXPECT_EQ(Status(id).notices(0).text(), "job failed: " + Status(id).reason());
  EXPECT_EQ(Status(id).groups(1).state(), v1::GROUP_STATE_CANCELLED);
  w2.Receive(now_);
  EXPECT_THAT(w2.stop_reasons(), ElementsAre("the job has ended: failed"));
  EXPECT_TRUE(w2.running().empty());
}

// A group that gives up for want of a server tries again for as long as that takes; one whose ranks die without a word
// does not, though its daemon says UNAVAILABLE too, and its peers do.
TEST_F(CoordinatorTest, WaitsForServersButNotForCrashLoops) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const auto fail = [&](const std::string& id, const absl::Status& said) {
    Pass(absl::Seconds(31), {&w1});
    if (w1.running().empty()) return;
    const GroupKey key = w1.started().back();
    EXPECT_EQ(key.job_id, id);
    w1.Failed(key, said, now_);
    w1.End(key, absl::UnavailableError("rank 0 (pid 1): " + std::string(said.message())), now_);
  };
  const std::string waits = Submit({1, 2});
  for (int i = 0; i < 30; ++i) fail(waits, absl::UnavailableError("server b:1: connection refused"));
  EXPECT_EQ(Status(waits).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(w1.started().size(), 30u);
  EXPECT_EQ(Status(waits).groups(0).reason(),
            "failed (rank 0 (pid 1): server b:1: connection refused); starts again in 30s, attempt 31");
  ASSERT_TRUE(coordinator_->Cancel(waits, now_).ok());

  const std::string crashes = Submit({1, 2});
  for (int i = 0; i < 30; ++i) fail(crashes, absl::UnavailableError("waited for rank 1, which has left the group"));
  EXPECT_EQ(Status(crashes).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(w1.started().size(), 40u);
}

// Where the job store was moved away, no new job gets the id of one that has a log, or whose center a server holds.
TEST_F(CoordinatorTest, GivesNoIdTwiceWithoutItsStore) {
  EXPECT_EQ(Submit(), "fashion-1");
  EXPECT_EQ(Submit(), "fashion-2");
  store_ = std::make_shared<InMemoryJobStore>();
  Restart();
  EXPECT_EQ(Submit(), "fashion-3");
  v1::ServerHeartbeatRequest request;
  request.set_address("b:1");
  request.add_jobs("fashion-2");
  request.add_jobs("other-40");
  request.add_jobs("wrong-18446744073709551615");
  EXPECT_THAT(*coordinator_->ServerHeartbeat(request, now_), ElementsAre());
  EXPECT_EQ(Submit(), "fashion-41");
}

// Cancelling stops the groups, twice is as once, and slots are free only when the groups have really ended.
TEST_F(CoordinatorTest, Cancels) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string first = Submit({1, 2});
  const std::string second = Submit({1, 2});
  w1.Receive(now_);
  EXPECT_EQ(coordinator_->Cancel(first, now_)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(coordinator_->Cancel(first, now_)->reason(), "cancelled by the user");
  w1.Receive(now_, /*linger=*/true);
  EXPECT_EQ(Status(second).reason(), "2 ranks needed, worker w1 at site hpc has 0 free slots");
  w1.Receive(now_);
  w1.Receive(now_);
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{first, 0, 1}, GroupKey{second, 0, 1}));
  EXPECT_EQ(coordinator_->Cancel("nothing-9", now_).status().code(), absl::StatusCode::kNotFound);
}

// A worker that is silent is named after 4 s; past its lease its group runs elsewhere; when it comes back it must stop
// the old one.
TEST_F(CoordinatorTest, MovesTheGroupsOfASilentWorker) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 17, now_);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string since = ReadableTime(now_);
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
  EXPECT_THAT(w1.stop_reasons(), ElementsAre("incarnation 1 was replaced by incarnation 2"));
  EXPECT_EQ(Status(id).groups(0).worker(), "w2");
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_STARTING);
}

// A worker whose stream broke and that is back within its lease keeps its groups, and people are told that it answers
// again.
TEST_F(CoordinatorTest, KeepsTheGroupsOfAWorkerThatIsSoonBack) {
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

// A coordinator that starts again waits a lease for the workers of running groups, adopts what they bring, and goes on.
TEST_F(CoordinatorTest, AdoptsAfterARestart) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 3, now_);
  const std::string waiting = Submit({1, 2});
  w1.Disconnect(now_);
  w1.End({id, 0, 1}, absl::OkStatus(), now_);  // While nobody listens.
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

// Where the worker does not come back within a lease after the restart, its group is placed again.
TEST_F(CoordinatorTest, GivesUpOnWorkersThatDoNotReturn) {
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

// A start that was lost with its stream is found out at the worker's next heartbeat and sent again as a new
// incarnation.
TEST_F(CoordinatorTest, FindsOutLostStarts) {
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

// A daemon that died and was started again under its name has lost its groups: they start anew at once.
TEST_F(CoordinatorTest, RestartsTheGroupsOfADaemonThatDied) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Crash(now_);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Milliseconds(500), {&w1});
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}, GroupKey{id, 0, 2}));
}

// A group whose daemon dies with it each time waits longer each time, says when and how often, and after ten times
// without a new step fails the job; a new step begins the row anew.
TEST_F(CoordinatorTest, BacksOffFromAGroupThatTakesItsDaemonAlong) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  const auto die = [&] {
    w1.Crash(now_);
    ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
    w1.Heartbeat(now_);  // What it does not run is known to be lost now.
    w1.Receive(now_);
  };
  die();
  ASSERT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}, GroupKey{id, 0, 2}));  // At once.
  EXPECT_THAT(Log(id), HasSubstr("group 0 at step 0: lost (worker w1 does not run it any more); starts again at once, "
                                 "attempt 2"));
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
  EXPECT_THAT(Log(id), HasSubstr("lost (worker w1 does not run it any more); starts again in 30s, attempt 10"));
  die();
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Status(id).reason(),
            "group 0 failed 10 times in a row without a new step; the last time: lost, for worker w1 does not run it "
            "any more; see whether that node has enough memory and a steady network, then submit the job again");
}

// A second daemon under a name that is taken is refused while the first one lives, and welcome after that.
TEST_F(CoordinatorTest, RefusesASecondWorkerOfAName) {
  FakeWorker w1("w1", 2), other("w1", 4, "cloud");
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  other.Crash(now_);  // So that its instance differs.
  const absl::Status status = other.Connect(*coordinator_, now_);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(),
            "a worker named w1 is connected already (site hpc): give this one another name with --name");
  w1.Disconnect(now_);
  EXPECT_TRUE(other.Connect(*coordinator_, now_).ok());
}

// The same event twice changes nothing, and is acknowledged again.
TEST_F(CoordinatorTest, EventsCountOnce) {
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

// A rank that its daemon reports as silent shows in the status and the log until it answers again.
TEST_F(CoordinatorTest, ShowsSilentRanks) {
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

// A server that stops its heartbeats shows within 5 s in the status of each job that uses it, with the step; and when
// it is back.
TEST_F(CoordinatorTest, ShowsSilentServers) {
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

// A silent server that a job uses stays known for as long as the job does, and a group that starts meanwhile shows it;
// one that nobody uses is forgotten after an hour.
TEST_F(CoordinatorTest, KeepsTheSilentServersOfRunningJobs) {
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

// A job waits for a server as it waits for a worker; a server learns which of its jobs have ended.
TEST_F(CoordinatorTest, ServersComeAndLearnOfEnds) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(5), {&w1}, /*server_lives=*/false);
  const std::string id = Submit({1, 2});
  EXPECT_EQ(Status(id).reason(), "no server has joined");
  Pass(absl::Seconds(1), {&w1});
  EXPECT_EQ(w1.started().size(), 1u);
  ASSERT_TRUE(coordinator_->Cancel(id, now_).ok());
  v1::ServerHeartbeatRequest request;
  request.set_address("b:1");
  request.add_jobs(id);
  request.add_jobs("unknown-3");
  EXPECT_THAT(*coordinator_->ServerHeartbeat(request, now_), ElementsAre(id));
}

// A coordinator that was stopped for a minute (SIGSTOP, a laptop's lid) takes nobody for lost when it goes on.
TEST_F(CoordinatorTest, ItsOwnPauseIsNobodysSilence) {
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

// Right after a restart, a server that is only remembered is given to no new job.
TEST_F(CoordinatorTest, GivesJobsOnlyServersThatWereHeard) {
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

// A job that asks for a number of servers waits for so many, and takes those that hold the least.
TEST_F(CoordinatorTest, AJobAsksForServers) {
  FakeWorker w1("w1", 4);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const auto submit = [this](uint32_t servers) {
    v1::SubmitRequest request = ExampleSubmission(absl::StrCat("asks for ", servers), {1, 2});
    request.mutable_job()->mutable_averaging()->set_servers(servers);
    return coordinator_->Submit(request, now_).value_or("");
  };
  const std::string three = submit(3);
  EXPECT_EQ(Status(three).reason(), "3 servers needed, 1 has joined");
  v1::ServerHeartbeatRequest full;
  full.set_address("a:1");
  full.set_center_bytes(1000);
  ASSERT_TRUE(coordinator_->ServerHeartbeat(full, now_).ok());
  Heartbeat("c:1");
  Pass(absl::Seconds(1), {&w1});
  EXPECT_THAT(Status(three).servers(), ElementsAre("b:1", "a:1", "c:1"));
  const std::string two = submit(2);
  EXPECT_THAT(Status(two).servers(), ElementsAre("b:1", "c:1"));
  EXPECT_THAT(Log(two), HasSubstr("center on b:1, c:1: the 2 of 3 that hold the fewest bytes"));
}

// More ranks than any worker has slots is refused at once.
TEST_F(CoordinatorTest, RefusesJobsThatFitNowhere) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const absl::Status status = coordinator_->Submit(ExampleSubmission("s", {1, 3}), now_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the largest worker, w1 at site hpc, has 2 slots"));
}

// Whatever a daemon says, the coordinator answers with an error or ignores it, and goes on.
TEST_F(CoordinatorTest, SurvivesWrongMessages) {
  v1::WorkerHello hello;
  EXPECT_EQ(coordinator_->Hello(hello, now_).status().code(), absl::StatusCode::kInvalidArgument);
  hello.set_name("w/1");
  hello.set_site("hpc");
  hello.set_instance("i");
  hello.set_slots(2);
  EXPECT_EQ(coordinator_->Hello(hello, now_).status().message(),
            "a worker's name is \"w/1\", allowed are 1 to 63 characters of [A-Za-z0-9._-]");
  hello.set_name("w1");
  hello.set_slots(5000);
  EXPECT_EQ(coordinator_->Hello(hello, now_).status().message(), "worker w1 has 5000 slots, allowed is 1 to 4096");
  hello.set_slots(2);
  hello.add_running()->set_job_id(std::string(100000, '\xff'));
  const absl::StatusOr<SessionId> session = coordinator_->Hello(hello, now_);
  ASSERT_TRUE(session.ok());

  const std::string id = Submit({1, 2});
  EXPECT_EQ(Status(id).reason(), "2 ranks needed, worker w1 at site hpc has 0 free slots");
  v1::WorkerMessage message;
  v1::GroupEvent* event = message.mutable_event();
  EXPECT_TRUE(coordinator_->Message(*session, message, now_).ok());
  event->mutable_group()->set_job_id(id);
  event->mutable_group()->set_group(4000000000);
  event->set_number(1);
  EXPECT_TRUE(coordinator_->Message(*session, message, now_).ok());
  event->mutable_group()->set_group(0);
  event->mutable_report()->set_rank(77);
  EXPECT_TRUE(coordinator_->Message(*session, message, now_).ok());
  event->mutable_ended()->set_code(-5);
  EXPECT_TRUE(coordinator_->Message(*session, message, now_).ok());
  message.mutable_log()->mutable_group()->set_job_id("../../etc/passwd");
  message.mutable_log()->add_lines("x");
  EXPECT_TRUE(coordinator_->Message(*session, message, now_).ok());
  EXPECT_EQ(coordinator_->ReadLog("../../etc/passwd", 0, 100).status().code(), absl::StatusCode::kNotFound);
  *message.mutable_hello() = hello;
  EXPECT_EQ(coordinator_->Message(*session, message, now_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(coordinator_->Message(*session + 1, message, now_).code(), absl::StatusCode::kAborted);
  v1::ServerHeartbeatRequest request;
  request.set_address("nowhere");
  EXPECT_EQ(coordinator_->ServerHeartbeat(request, now_).status().message(),
            "a server's address is \"nowhere\", allowed is HOST:PORT");
}

// A worker that takes no commands is disconnected before its outbox grows without bound.
TEST_F(CoordinatorTest, OutboxesAreBounded) {
  FakeWorker w1("w1", 4096);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  for (int round = 0; round < 5; ++round) {
    std::vector<std::string> jobs(4);
    for (std::string& job : jobs) job = Submit({1024, 1});
    for (const std::string& job : jobs) ASSERT_TRUE(coordinator_->Cancel(job, now_).ok());
    // Freed without being received: the worker says that they have ended.
    FakeWorker* worker = &w1;
    if (!worker->connected()) break;
    v1::WorkerMessage message;
    for (const std::string& job : jobs) {
      for (uint32_t group = 0; group < 1024; ++group) {
        message.mutable_event()->mutable_group()->set_job_id(job);
        message.mutable_event()->mutable_group()->set_group(group);
        message.mutable_event()->mutable_group()->set_incarnation(1);
        message.mutable_event()->mutable_ended();
        (void)coordinator_->Message(1, message, now_);
      }
    }
  }
  w1.Receive(now_);
  EXPECT_FALSE(w1.connected());
  EXPECT_TRUE(w1.started().empty());
}

}  // namespace
}  // namespace hooke
