#include "server/coordinator/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "job/job_defaults.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_server.h"
#include "server/coordinator/fake_worker.h"
#include "server/records/record_store.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using CoordinatorTest = CoordinatorFixture;

// The life of a job: queued with a reason, groups placed and running, all finished, the center evaluated, succeeded.
TEST_F(CoordinatorTest, TakesAJobFromSubmitToSuccess) {
  const std::string id = Submit({2, 2});
  EXPECT_EQ(id, "fashion-1");
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Status(id).reason(), "1st in the queue; no worker is there");

  Heartbeat("a:1");
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  w1.Receive(now_);
  w2.Receive(now_);
  ASSERT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}));
  ASSERT_THAT(w2.started(), ElementsAre(GroupKey{id, 1, 1}));
  const v1::StartGroupCommand& start = w1.running().at({id, 0, 1}).start;
  EXPECT_EQ(start.ranks(), 2u);
  EXPECT_EQ(start.group().task(), v1::GroupStart::TRAIN);
  EXPECT_THAT(start.group().servers(), ElementsAre("b:1", "a:1"));  // The coordinator's own server comes first.
  EXPECT_EQ(start.group().job_key(), "s1");                         // The submission's id.
  EXPECT_EQ(start.group().job().ShortDebugString(), FillDefaults(ExampleJob({2, 2})).ShortDebugString());

  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_STARTING);
  EXPECT_EQ(Status(id).first_step_unix_ms(), 0);
  now_ += absl::Seconds(1);
  w1.Progress({id, 0, 1}, 5, now_);
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_RUNNING);
  EXPECT_EQ(Status(id).groups(0).progress().step(), 5u);
  EXPECT_EQ(Status(id).first_step_unix_ms(), absl::ToUnixMillis(now_.wall));

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

// A group's status lists each server that a rank misses, with the time at which the first rank began to miss it. The
// job's status has the last setback.
TEST_F(CoordinatorTest, TellsWhichServersAGroupMissesAndTheLastSetback) {
  Heartbeat("a:1");
  FakeWorker w1("w1", 4);
  const std::string id = Submit({1, 2});
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  w1.Receive(now_);
  const GroupKey key = {id, 0, 1};
  w1.Progress(key, 5, now_);
  EXPECT_TRUE(Status(id).groups(0).progress().absent_servers().empty());
  v1::RankEvent event;
  const auto absent = [&event](const std::string& address, int64_t since) {
    v1::AbsentServer* server = event.mutable_progress()->add_absent_servers();
    server->set_address(address);
    server->set_since_unix_ms(since);
  };
  absent("a:1", 2000);
  absent("nobody's:1", 1000);  // It is no server of the job, so it is ignored.
  w1.Send(key, 1, event, now_);
  EXPECT_EQ(Status(id).groups(0).progress().step(), 5u) << "rank 0's";
  ASSERT_EQ(Status(id).groups(0).progress().absent_servers_size(), 1);
  event.mutable_progress()->clear_absent_servers();
  event.mutable_progress()->set_step(6);
  absent("a:1", 1500);
  w1.Send(key, 0, event, now_);
  ASSERT_EQ(Status(id).groups(0).progress().absent_servers_size(), 1);
  EXPECT_EQ(Status(id).groups(0).progress().absent_servers(0).address(), "a:1");
  EXPECT_EQ(Status(id).groups(0).progress().absent_servers(0).since_unix_ms(), 1500);
  event.mutable_progress()->clear_absent_servers();
  w1.Send(key, 0, event, now_);
  w1.Send(key, 1, event, now_);
  EXPECT_TRUE(Status(id).groups(0).progress().absent_servers().empty());

  EXPECT_FALSE(Status(id).has_setback());
  event.mutable_notice()->set_text("server a:1 came back");
  w1.Send(key, 1, event, now_);
  EXPECT_FALSE(Status(id).has_setback());
  event.mutable_notice()->set_setback(true);
  w1.Send(key, 1, event, now_);
  EXPECT_EQ(Status(id).setback().text(), "group 0 rank 1: server a:1 came back");
}

// If a client repeats a submission, it gets the same job, also after a restart of the coordinator.
TEST_F(CoordinatorTest, SubmitsOnce) {
  const v1::SubmitRequest request = ExampleSubmission("once");
  EXPECT_EQ(*coordinator_->Submit(request, now_), "fashion-1");
  EXPECT_EQ(*coordinator_->Submit(request, now_), "fashion-1");
  Restart();
  EXPECT_EQ(*coordinator_->Submit(request, now_), "fashion-1");
  EXPECT_EQ(*coordinator_->Submit(ExampleSubmission("twice"), now_), "fashion-2");
  EXPECT_EQ(coordinator_->List(SIZE_MAX, now_).jobs.size(), 2u);
  EXPECT_EQ(coordinator_->List(SIZE_MAX, now_).jobs[0].job_id(), "fashion-2");
}

// A job that cannot be stored is refused and does not exist. When the disk works again, the same submission is
// accepted.
TEST_F(CoordinatorTest, AcknowledgesOnlyWhatIsStored) {
  store_->FailWith(absl::ResourceExhaustedError("the disk is full"));
  const absl::Status status = coordinator_->Submit(ExampleSubmission("s"), now_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the job could not be stored: the disk is full");
  EXPECT_TRUE(coordinator_->List(SIZE_MAX, now_).jobs.empty());
  store_->FailWith(absl::OkStatus());
  EXPECT_TRUE(coordinator_->Submit(ExampleSubmission("s"), now_).ok());
}

// A start is sent only after its record is stored. Otherwise a restarted coordinator could start the same incarnation
// again.
TEST_F(CoordinatorTest, SendsNothingThatIsNotStored) {
  FakeWorker w1("w1", 2);
  const std::string id = Submit({1, 2});
  store_->FailWith(absl::InternalError("broken disk"));
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(3), {&w1});
  EXPECT_TRUE(w1.started().empty());
  EXPECT_EQ(coordinator_->Cancel(id, now_).status(),
            absl::InternalError("job fashion-1 is told to stop, but that could not be stored yet: broken disk: see to "
                                "the coordinator's disk, and cancel it again"));
  store_->FailWith(absl::OkStatus());
  Pass(absl::Seconds(2), {&w1});
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}));
  EXPECT_TRUE(w1.running().empty());  // The start came before the stop.
}

// If the job store was moved away, no new job gets the id of one that has a log, or whose center a server holds.
TEST_F(CoordinatorTest, GivesNoIdTwiceWithoutItsStore) {
  EXPECT_EQ(Submit(), "fashion-1");
  EXPECT_EQ(Submit(), "fashion-2");
  store_ = std::make_shared<InMemoryRecordStore>();
  Restart();
  EXPECT_EQ(Submit(), "fashion-3");
  v1::ServerHeartbeatRequest request = FakeServer("b:1");
  request.add_jobs("fashion-2");
  request.add_jobs("other-40");
  request.add_jobs("wrong-18446744073709551615");
  EXPECT_THAT(coordinator_->ServerHeartbeat(request, now_)->ended_jobs(), ElementsAre());
  EXPECT_EQ(Submit(), "fashion-41");
}

// Cancelling a job stops its groups. Cancelling it again changes nothing. Its slots are free only when the groups have
// ended.
TEST_F(CoordinatorTest, Cancels) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string first = Submit({1, 2});
  const std::string second = Submit({1, 2});
  w1.Receive(now_);
  EXPECT_EQ(coordinator_->Cancel(first, now_)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(coordinator_->Cancel(first, now_)->reason(), "cancelled by the user");
  w1.Receive(now_, /*linger=*/true);
  EXPECT_EQ(Status(second).reason(),
            "1st in the queue; needs 2 slots; 0 free on w1 at hpc; 2 more when fashion-1 ends");
  w1.Receive(now_);
  w1.Receive(now_);
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{first, 0, 1}, GroupKey{second, 0, 1}));
  EXPECT_EQ(coordinator_->Cancel("nothing-9", now_).status().code(), absl::StatusCode::kNotFound);
}

// A job waits until there is a server. A server learns which of its jobs have ended.
TEST_F(CoordinatorTest, ServersComeAndLearnOfEnds) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(5), {&w1}, /*server_lives=*/false);
  const std::string id = Submit({1, 2});
  EXPECT_EQ(Status(id).reason(), "1st in the queue; no server has joined");
  Pass(absl::Seconds(1), {&w1});
  EXPECT_EQ(w1.started().size(), 1u);
  ASSERT_TRUE(coordinator_->Cancel(id, now_).ok());
  v1::ServerHeartbeatRequest request = FakeServer("b:1");
  request.add_jobs(id);
  request.add_jobs("unknown-3");
  EXPECT_THAT(coordinator_->ServerHeartbeat(request, now_)->ended_jobs(), ElementsAre(id));
}

// A job that asks for a number of servers waits until there are that many. It then gets the servers that hold the
// fewest bytes.
TEST_F(CoordinatorTest, AJobAsksForServers) {
  FakeWorker w1("w1", 4);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const auto submit = [this](uint32_t servers) {
    v1::SubmitRequest request = ExampleSubmission(absl::StrCat("asks for ", servers), {1, 2});
    request.mutable_job()->mutable_averaging()->set_servers(servers);
    return coordinator_->Submit(request, now_).value_or("");
  };
  const std::string three = submit(3);
  EXPECT_EQ(Status(three).reason(), "1st in the queue; 3 servers needed, 1 has joined");
  v1::ServerHeartbeatRequest full = FakeServer("a:1");
  full.set_center_bytes(1000);
  full.set_disk_centers(3);
  full.set_disk_bytes(4000);
  full.set_cores(0.5);
  full.mutable_exchanges()->set_messages_per_second(21);
  full.mutable_exchanges()->set_p99_ms(-1);
  full.mutable_exchanges()->set_median_ms(std::nan(""));
  full.set_snapshot_age_seconds(12);
  ASSERT_TRUE(coordinator_->ServerHeartbeat(full, now_).ok());
  EXPECT_EQ(coordinator_->Nodes(now_)[0].disk_centers(), 3u);
  EXPECT_EQ(coordinator_->Nodes(now_)[0].disk_bytes(), 4000u);
  EXPECT_EQ(coordinator_->Nodes(now_)[0].cores(), 0.5);
  EXPECT_EQ(coordinator_->Nodes(now_)[0].exchanges().messages_per_second(), 21);
  EXPECT_EQ(coordinator_->Nodes(now_)[0].exchanges().p99_ms(), 0) << "no server says what cannot be";
  EXPECT_EQ(coordinator_->Nodes(now_)[0].exchanges().median_ms(), 0);
  EXPECT_EQ(coordinator_->Nodes(now_)[0].snapshot_age_seconds(), 12);
  Heartbeat("c:1");
  Pass(absl::Seconds(1), {&w1});
  EXPECT_THAT(Status(three).servers(), ElementsAre("b:1", "a:1", "c:1"));
  const std::string two = submit(2);
  EXPECT_THAT(Status(two).servers(), ElementsAre("b:1", "c:1"));
  EXPECT_THAT(Log(two), HasSubstr("center on b:1, c:1: the 2 of 3 that hold the fewest bytes"));
}

// A client need not know the defaults. The coordinator fills them in before it checks, stores and starts the job.
TEST_F(CoordinatorTest, FillsInTheDefaultsOfAShortJob) {
  Heartbeat("a:1");
  FakeWorker w1("w1", 1);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  v1::SubmitRequest request;
  request.set_submission_id("s");
  v1::JobSpec& job = *request.mutable_job();
  job.set_name("short");
  job.mutable_model()->set_name("mlp");
  job.mutable_data()->set_train("/data/train");
  EXPECT_EQ(coordinator_->Submit(request, now_).status().code(), absl::StatusCode::kInvalidArgument);
  job.mutable_data()->set_test("/data/test");
  const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
  ASSERT_TRUE(id.ok()) << id.status();
  w1.Receive(now_);
  ASSERT_THAT(w1.started(), ElementsAre(GroupKey{*id, 0, 1}));
  const v1::JobSpec& started = w1.running().at({*id, 0, 1}).start.group().job();
  EXPECT_EQ(started.ShortDebugString(), FillDefaults(job).ShortDebugString());
  EXPECT_EQ(started.train().epochs(), 10u);
}

// A job whose groups have more ranks than any worker has slots is refused at once.
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
  EXPECT_EQ(Status(id).reason(),
            "1st in the queue; needs 2 slots; 0 free on w1 at hpc; 2 more when a group of an unknown job ends");
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
  v1::ServerHeartbeatRequest request = FakeServer("nowhere");
  EXPECT_EQ(coordinator_->ServerHeartbeat(request, now_).status().message(),
            "a server's address: \"nowhere\" is no address, allowed is HOST:PORT or [IPv6]:PORT");
  request = FakeServer("b:1");
  request.set_instance(std::string(65, 'x'));
  EXPECT_EQ(coordinator_->ServerHeartbeat(request, now_).status().code(), absl::StatusCode::kInvalidArgument);
  request.clear_server_id();
  EXPECT_EQ(coordinator_->ServerHeartbeat(request, now_).status().code(), absl::StatusCode::kFailedPrecondition);
}

// A worker that takes no commands is disconnected before its outbox grows without bound.
TEST_F(CoordinatorTest, OutboxesAreBounded) {
  settings_.outbox_bytes_max = 4 << 20;
  Restart();
  FakeWorker w1("w1", 4096);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  for (int round = 0; round < 5; ++round) {
    std::vector<std::string> jobs(4);
    for (std::string& job : jobs) job = Submit({1024, 1});
    for (const std::string& job : jobs) ASSERT_TRUE(coordinator_->Cancel(job, now_).ok());
    // The worker frees its slots without reading any command: it reports each group as ended.
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

// Beyond a number of unfinished jobs, or of bytes of their specs, submissions are refused, and the message says what to
// do. A repeated submission of an accepted job still gets that job. A job that ends makes room.
TEST_F(CoordinatorTest, TakesOnlySoManyJobs) {
  settings_.cluster.unfinished_jobs_max = 3;
  Restart();
  for (int i = 1; i <= 3; ++i) Submit();
  const absl::Status full = coordinator_->Submit(ExampleSubmission("one more"), now_).status();
  EXPECT_EQ(full, absl::ResourceExhaustedError("3 jobs wait or run already, and the coordinator takes at most 3 of at "
                                               "most 256 MiB: wait until some have ended, or cancel some with `hooke "
                                               "cancel`"));
  EXPECT_EQ(*coordinator_->Submit(ExampleSubmission("s3"), now_), "fashion-3");
  ASSERT_TRUE(coordinator_->Cancel("fashion-1", now_).ok());
  EXPECT_TRUE(coordinator_->Submit(ExampleSubmission("one more"), now_).ok());

  settings_.cluster = {};
  settings_.cluster.unfinished_bytes_max = 1;
  Restart();
  EXPECT_EQ(coordinator_->Submit(ExampleSubmission("large"), now_).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// A list that has no room for all jobs holds the newest.
TEST_F(CoordinatorTest, ListsTheNewestJobs) {
  for (int i = 0; i < 3; ++i) Submit();
  const size_t bytes = coordinator_->List(SIZE_MAX, now_).jobs[0].ByteSizeLong();
  const JobList list = coordinator_->List(2 * bytes + bytes / 2, now_);
  ASSERT_EQ(list.jobs.size(), 2u);
  EXPECT_EQ(list.jobs[0].job_id(), "fashion-3");
  EXPECT_EQ(list.jobs[1].job_id(), "fashion-2");
  EXPECT_EQ(list.left_out, 1u);
}

// A worker can write only lines of groups that it runs into a job's log. A line that is too long is cut.
TEST_F(CoordinatorTest, TakesLogLinesOnlyOfTheWorkersOwnGroups) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w2.Receive(now_);
  ASSERT_EQ(w1.running().size(), 1u);
  w1.Log({id, 0, 1}, "group 0 rank 0: mine", now_);
  w1.Log({id, 0, 2}, "group 0 rank 0: of no such start", now_);
  w2.Log({id, 0, 1}, "group 0 rank 0: not mine", now_);
  w1.Log({id, 0, 1}, std::string(100000, 'x'), now_);
  EXPECT_THAT(Log(id), HasSubstr("mine\n"));
  EXPECT_THAT(Log(id), testing::Not(HasSubstr("not mine")));
  EXPECT_THAT(Log(id), testing::Not(HasSubstr("of no such start")));
  EXPECT_LT(Log(id).size(), 10000u);
}

// If there are too many finished jobs, those that ended first are forgotten by the coordinator, its store and its logs.
// Jobs that have not ended are never forgotten, and no id is given twice.
TEST_F(CoordinatorTest, ForgetsTheOldestFinishedJobs) {
  settings_.cluster.keep.jobs_max = 2;
  Restart();
  std::vector<std::string> ids(5);
  for (std::string& id : ids) id = Submit();
  for (const int job : {3, 1, 4}) {
    now_ += absl::Seconds(1);
    ASSERT_TRUE(coordinator_->Cancel(ids[job], now_).ok());
  }
  EXPECT_EQ(coordinator_->List(SIZE_MAX, now_).jobs.size(), 5u);
  Pass(absl::Seconds(50), {});
  EXPECT_EQ(coordinator_->List(SIZE_MAX, now_).jobs.size(), 5u) << "whoever watches it hears of its end";
  Pass(absl::Seconds(20), {});
  const auto known = [&] {
    std::vector<std::string> jobs;
    for (const v1::JobStatus& job : coordinator_->List(SIZE_MAX, now_).jobs) jobs.push_back(job.job_id());
    return jobs;
  };
  EXPECT_THAT(known(), ElementsAre(ids[4], ids[2], ids[1], ids[0]));
  EXPECT_EQ(coordinator_->Status(ids[3], now_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/" + ids[3] + ".log"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/" + ids[1] + ".log"));
  Restart();
  EXPECT_THAT(known(), ElementsAre(ids[4], ids[2], ids[1], ids[0]));
  EXPECT_EQ(*coordinator_->Submit(ExampleSubmission("s4"), now_), "fashion-6");  // A new job: "s4" is forgotten too.
  EXPECT_EQ(*coordinator_->Submit(ExampleSubmission("s5"), now_), ids[4]);
}

// A job's number is not given again, although the job was forgotten and had the highest number. The coordinator keeps a
// ForgottenJob record with the number.
TEST_F(CoordinatorTest, GivesNoIdTwice) {
  settings_.cluster.keep.jobs_max = 1;
  Restart();
  const std::string first = Submit();
  const std::string last = Submit();
  ASSERT_TRUE(coordinator_->Cancel(last, now_).ok());
  now_ += absl::Seconds(1);
  ASSERT_TRUE(coordinator_->Cancel(first, now_).ok());
  Pass(absl::Seconds(61), {});
  EXPECT_EQ(coordinator_->Status(last, now_).status().code(), absl::StatusCode::kNotFound);
  Restart();
  EXPECT_EQ(Submit(), "fashion-3");
}

// A finished job is not forgotten before its servers have learned of its end. A server that is away would otherwise
// keep the center in memory for ever.
TEST_F(CoordinatorTest, KeepsAJobUntilItsServersKnowOfItsEnd) {
  settings_.cluster.keep.jobs_max = 1;
  Restart();
  FakeWorker w1("w1", 2);
  Pass(absl::Seconds(1), {});
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string placed = Submit({1, 2});
  Pass(absl::Seconds(1), {&w1});
  ASSERT_EQ(w1.started().size(), 1u);
  ASSERT_TRUE(coordinator_->Cancel(placed, now_).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(coordinator_->Cancel(Submit(), now_).ok());
  Pass(absl::Seconds(90), {&w1}, /*server_lives=*/false);
  EXPECT_TRUE(coordinator_->Status(placed, now_).ok());
  Pass(absl::Seconds(2), {&w1});
  EXPECT_EQ(coordinator_->Status(placed, now_).status().code(), absl::StatusCode::kNotFound);
}

// A job that is forgotten while the disk fails comes back with a restart, and is then forgotten again.
TEST_F(CoordinatorTest, ForgetsAgainWhatADiskKept) {
  settings_.cluster.keep.jobs_max = 1;
  Restart();
  const std::string first = Submit();
  const std::string second = Submit();
  ASSERT_TRUE(coordinator_->Cancel(first, now_).ok());
  now_ += absl::Seconds(1);
  ASSERT_TRUE(coordinator_->Cancel(second, now_).ok());
  store_->FailWith(absl::InternalError("broken disk"));
  Pass(absl::Seconds(61), {});
  EXPECT_EQ(coordinator_->List(SIZE_MAX, now_).jobs.size(), 1u);
  store_->FailWith(absl::OkStatus());
  Restart();
  EXPECT_EQ(coordinator_->List(SIZE_MAX, now_).jobs.size(), 2u);
  Pass(absl::Seconds(61), {});
  EXPECT_EQ(coordinator_->List(SIZE_MAX, now_).jobs.size(), 1u);
  EXPECT_EQ(Stored().size(), 1u);
}

// Of a rank's metrics the coordinator keeps those that are allowed, and shows them with progress and evaluations.
TEST_F(CoordinatorTest, MetricsOfAProgram) {
  FakeWorker w1("w1", 4);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  const auto add = [](const std::string& name, double value, google::protobuf::RepeatedPtrField<v1::Metric>* metrics) {
    v1::Metric* metric = metrics->Add();
    metric->set_name(name);
    metric->set_value(value);
  };
  v1::RankEvent progress;
  progress.mutable_progress()->set_step(1);
  progress.mutable_progress()->set_phase(v1::RankProgress::COMPUTE);
  v1::RankEvent evaluated;
  evaluated.mutable_evaluated()->set_accuracy(std::numeric_limits<double>::quiet_NaN());
  evaluated.mutable_evaluated()->set_step(7);
  for (auto* metrics :
       {progress.mutable_progress()->mutable_metrics(), evaluated.mutable_evaluated()->mutable_metrics()}) {
    add("", 1, metrics);
    add("\x1b[2J", 1, metrics);
    for (int i = 0; i < 1000; ++i) add("perplexity", 21.5, metrics);
  }
  w1.Send({id, 0, 1}, 0, progress, now_);
  w1.Send({id, 0, 1}, 0, evaluated, now_);
  for (const auto& metrics : {Status(id).groups(0).progress().metrics(), Status(id).center().metrics()}) {
    ASSERT_EQ(metrics.size(), 1);
    EXPECT_EQ(metrics[0].name(), "perplexity");
  }
  EXPECT_THAT(Log(id), HasSubstr("coordinator center perplexity 21.5, at step 7, epoch 0.00"));
}

}  // namespace
}  // namespace hooke
