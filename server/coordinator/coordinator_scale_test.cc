// Jobs whose number of groups changes: who leaves, when the next generation begins, and what its groups are told.

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class CoordinatorScaleTest : public CoordinatorFixture {
 protected:
  using CoordinatorFixture::Submit;
  // Submits a job whose center is on `servers` servers.
  std::string Submit(ExampleGroups groups, uint32_t servers) {
    v1::SubmitRequest request = ExampleSubmission(absl::StrCat("s", ++submissions_), groups);
    request.mutable_job()->mutable_averaging()->set_servers(servers);
    return *coordinator_->Submit(request, now_);
  }
  // Returns the generations that the coordinator tells the server to end. The server's heartbeat reports none as ended.
  std::vector<v1::GenerationEnd> Ends(const std::string& address) {
    const auto response = coordinator_->ServerHeartbeat(FakeServer(address), now_);
    return {response->closing().begin(), response->closing().end()};
  }
  // Pass with a second server, b:2.
  void PassWithBoth(absl::Duration time, const std::vector<FakeWorker*>& alive) {
    for (absl::Duration done; done < time; done += absl::Milliseconds(500)) {
      Heartbeat("b:2");
      Pass(absl::Milliseconds(500), alive);
    }
  }
  absl::Status Scale(const std::string& job_id, uint32_t groups) {
    v1::ScaleJobRequest request;
    request.set_job_id(job_id);
    request.set_groups(groups);
    return coordinator_->Scale(request, now_).status();
  }
  void Exchanged(FakeWorker& worker, const GroupKey& key, uint64_t step) {
    v1::RankEvent event;
    event.mutable_progress()->set_step(step);
    event.mutable_progress()->set_exchanged_step(step);
    event.mutable_progress()->set_phase(v1::RankProgress::COMPUTE);
    worker.Send(key, 0, event, now_);
  }
};

// Two groups leave. Only when both have ended do the three groups of the next generation start.
TEST_F(CoordinatorScaleTest, AllLeaveBeforeTheNextGenerationBegins) {
  FakeWorker w1("w1", 2);
  FakeWorker w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1});
  Pass(absl::Seconds(1), {&w1, &w2});
  ASSERT_EQ(w1.running().size() + w2.running().size(), 2u);
  FakeWorker& of0 = w1.running().count({id, 0, 1}) > 0 ? w1 : w2;
  FakeWorker& of1 = w1.running().count({id, 1, 1}) > 0 ? w1 : w2;
  Exchanged(of0, {id, 0, 1}, 40);
  Exchanged(of1, {id, 1, 1}, 32);
  ASSERT_TRUE(Scale(id, 3).ok());
  ASSERT_TRUE(Scale(id, 3).ok()) << "the same once more";
  w1.Receive(now_, /*linger=*/true);
  w2.Receive(now_, /*linger=*/true);
  EXPECT_GE(w1.leaves() + w2.leaves(), 2u);
  of0.End({id, 0, 1}, absl::CancelledError("left"), now_);
  Pass(absl::Seconds(1), {});
  EXPECT_THAT(Status(id).groups(), SizeIs(2)) << "group 1 has not left yet";
  EXPECT_THAT(Status(id).groups(0).reason(), HasSubstr("the number of groups changes"));
  of1.End({id, 1, 1}, absl::CancelledError("left"), now_);
  Pass(absl::Seconds(1), {&w1, &w2});
  const v1::JobStatus status = Status(id);
  ASSERT_THAT(status.groups(), SizeIs(3));
  EXPECT_EQ(status.generation(), 2u);
  EXPECT_EQ(status.spec().groups().count(), 3u);
  size_t started = 0;
  for (const FakeWorker* worker : {&w1, &w2}) {
    for (const auto& [key, run] : worker->running()) {
      ++started;
      const v1::GroupStart& start = run.start.group();
      EXPECT_EQ(key.incarnation, 2u);
      EXPECT_EQ(start.first_incarnation(), 2u);
      EXPECT_EQ(start.first_step(), 40u);
      ASSERT_THAT(start.earlier(), SizeIs(1));
      EXPECT_EQ(start.earlier(0).groups(1).last_step(), 32u);
      EXPECT_EQ(start.is_new(), key.group == 2);
      EXPECT_EQ(start.job().groups().count(), 3u);
    }
  }
  EXPECT_EQ(started, 3u);
  EXPECT_THAT(Log(id), HasSubstr("generation 2: 3 groups x 1 rank divide what is left, from step 40"));
}

// The request for another number of groups is stored. A coordinator that restarts before the groups have left tells
// them to leave again.
TEST_F(CoordinatorScaleTest, HoldsOverARestart) {
  FakeWorker w1("w1", 4);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1});
  Pass(absl::Seconds(1), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(2));
  ASSERT_TRUE(Scale(id, 1).ok());
  Restart();
  Pass(absl::Seconds(1), {});
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(3), {&w1});
  EXPECT_THAT(Status(id).groups(), SizeIs(1));
  ASSERT_THAT(w1.running(), SizeIs(1));
  EXPECT_EQ(w1.running().begin()->first, (GroupKey{id, 0, 2}));
  const std::vector<JobRecord> stored = Stored();
  ASSERT_THAT(stored, SizeIs(1));
  EXPECT_THAT(stored[0].groups, SizeIs(1)) << "the record of group 1 is removed";
  Restart();
  EXPECT_THAT(Status(id).groups(), SizeIs(1));
  EXPECT_EQ(Status(id).generation(), 2u);
}

// A group whose worker is lost cannot be told to leave. Instead, the loss of the worker ends it. Its last exchange
// counts.
TEST_F(CoordinatorScaleTest, ALostGroupDoesNotHoldUpTheOthers) {
  FakeWorker w1("w1", 1);
  FakeWorker w2("w2", 1);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1});
  Pass(absl::Seconds(1), {&w1, &w2});
  ASSERT_THAT(w2.running(), SizeIs(1));
  Exchanged(w2, w2.running().begin()->first, 16);
  w2.Disconnect(now_);
  ASSERT_TRUE(Scale(id, 1).ok());
  Pass(absl::Seconds(30), {&w1});
  EXPECT_THAT(Status(id).groups(), SizeIs(1));
  ASSERT_THAT(w1.running(), SizeIs(1));
  EXPECT_EQ(w1.running().begin()->second.start.group().first_step(), 16u);
}

// The coordinator stores how far a group's exchanges have come while the group trains. If the group reports an earlier
// step, because it goes on from there, that step counts.
TEST_F(CoordinatorScaleTest, ExchangedStepsSurviveARestart) {
  FakeWorker w1("w1", 1);
  FakeWorker w2("w2", 1);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1});
  Pass(absl::Seconds(1), {&w1, &w2});
  const GroupKey lost = w2.running().begin()->first;
  Exchanged(w2, lost, 5);
  Pass(absl::Seconds(20), {&w1, &w2});
  Exchanged(w2, lost, 5000);
  Pass(absl::Seconds(1), {&w1, &w2});
  Restart();
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Exchanged(w1, w1.running().begin()->first, 700);
  Exchanged(w1, w1.running().begin()->first, 600);
  ASSERT_TRUE(Scale(id, 1).ok());
  Pass(absl::Seconds(40), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(1));
  const v1::Generation& ended = w1.running().begin()->second.start.group().earlier(0);
  EXPECT_EQ(ended.groups(static_cast<int>(lost.group)).last_step(), 5000u);
  EXPECT_EQ(ended.groups(1 - static_cast<int>(lost.group)).last_step(), 600u);
}

// If the groups cannot start after their number has changed, a job that has trained is held and does not fail. It goes
// on once a user asks for another number of groups.
TEST_F(CoordinatorScaleTest, ANumberThatCannotBeginHoldsTheJob) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 1});
  Pass(absl::Seconds(1), {&w1});
  Exchanged(w1, {id, 0, 1}, 9);
  ASSERT_TRUE(Scale(id, 2).ok());
  Pass(absl::Seconds(2), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(2));
  for (uint32_t group : {0, 1}) w1.End({id, group, 2}, absl::InvalidArgumentError("too few samples"), now_);
  Pass(absl::Seconds(2), {&w1});
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_HELD) << Status(id).reason();
  EXPECT_THAT(Status(id).reason(), HasSubstr("too few samples; `hooke scale` with another number"));
  ASSERT_TRUE(Scale(id, 1).ok());
  Pass(absl::Seconds(2), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(1));
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(w1.running().begin()->second.start.group().first_step(), 9u);
}

// A worker connects again and does not name its part of a group. When the coordinator misses that part, the group no
// longer exists.
TEST_F(CoordinatorScaleTest, AMissingPartMayBeOfAGroupThatIsGone) {
  FakeWorker w1("w1", 1);
  FakeWorker w2("w2", 2);
  FakeWorker w3("w3", 3);
  w1.SetAddress("10.0.0.1");
  w2.SetAddress("10.0.0.2");
  for (FakeWorker* worker : {&w1, &w2, &w3}) ASSERT_TRUE(worker->Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 3});
  Pass(absl::Seconds(1), {&w1, &w2, &w3});
  ASSERT_EQ(w3.running().count({id, 0, 1}), 1u);
  ASSERT_EQ(w1.running().count({id, 1, 1}), 1u);
  ASSERT_TRUE(Scale(id, 1).ok());
  w3.Receive(now_);
  w1.Crash(now_);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  w2.End({id, 1, 1}, absl::UnavailableError("its peers are gone"), now_);
  Pass(absl::Seconds(3), {&w2, &w3});
  ASSERT_THAT(Status(id).groups(), SizeIs(1));
  w1.Heartbeat(now_);
  EXPECT_EQ(Status(id).generation(), 2u);
}

TEST_F(CoordinatorScaleTest, AJobThatWaitsJustHasOtherGroups) {
  const std::string id = Submit({2, 1});
  ASSERT_TRUE(Scale(id, 4).ok());
  Pass(absl::Seconds(1), {});
  EXPECT_THAT(Status(id).groups(), SizeIs(4));
  EXPECT_EQ(Status(id).generation(), 1u);
  FakeWorker w1("w1", 4);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(1), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(4));
  EXPECT_EQ(w1.running().begin()->second.start.group().first_incarnation(), 0u);
}

TEST_F(CoordinatorScaleTest, OnlyJobsWhoseGroupsTrain) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 1});
  EXPECT_EQ(Scale("mars-7", 2).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Scale(id, 0).code(), absl::StatusCode::kInvalidArgument);
  Pass(absl::Seconds(1), {&w1});
  w1.End({id, 0, 1}, absl::OkStatus(), now_);
  EXPECT_EQ(Scale(id, 2).code(), absl::StatusCode::kFailedPrecondition) << "it evaluates";
  ASSERT_TRUE(coordinator_->Cancel(id, now_).ok());
  EXPECT_EQ(Scale(id, 2).code(), absl::StatusCode::kFailedPrecondition);
}

// A group that is cut off goes on exchanging, and a killed one had exchanged more than it had reported. What the
// servers have counts, and the next generation begins when all of them have said it.
TEST_F(CoordinatorScaleTest, TheServersSayHowFarTheGroupsCame) {
  Heartbeat("b:2");
  FakeWorker w1("w1", 1);
  FakeWorker w2("w2", 1);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1}, 2);
  Pass(absl::Seconds(1), {&w1, &w2});
  ASSERT_THAT(Status(id).servers(), SizeIs(2));
  const uint32_t cut_off = w2.running().begin()->first.group;
  Exchanged(w1, w1.running().begin()->first, 40);
  Exchanged(w2, w2.running().begin()->first, 40);
  w2.Disconnect(now_);
  ASSERT_TRUE(Scale(id, 1).ok());
  shards_["b:1"][id] = {ClosedAt(cut_off, 1, 400), ClosedAt(1 - cut_off, 1, 48)};
  shards_["b:2"][id] = {ClosedAt(cut_off, 1, 392), ClosedAt(1 - cut_off, 1, 48)};
  PassWithBoth(absl::Seconds(1), {&w1});
  EXPECT_TRUE(Ends("b:1").empty()) << "one group is still placed, so nothing ends yet";
  PassWithBoth(absl::Seconds(30), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(1));
  const v1::GroupStart& start = w1.running().begin()->second.start.group();
  EXPECT_EQ(start.first_step(), 392u);
  EXPECT_EQ(start.earlier(0).groups(static_cast<int>(cut_off)).last_step(), 392u);
  EXPECT_EQ(start.earlier(0).groups(1 - static_cast<int>(cut_off)).last_step(), 48u);
}

// The job waits for a server that is down, and its status says so. A coordinator that is started again meanwhile asks
// again, also those that have answered already. Once the generation has begun, no server is asked any more.
TEST_F(CoordinatorScaleTest, WaitsForAServerThatIsDown) {
  Heartbeat("b:2");
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1}, 2);
  Pass(absl::Seconds(1), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(2));
  ASSERT_TRUE(Scale(id, 1).ok());
  EXPECT_TRUE(Ends("b:1").empty()) << "the groups have not left yet";
  shards_["b:1"][id] = {ClosedAt(0, 1, 24), ClosedAt(1, 1, 16)};
  shards_["b:2"][id] = {ClosedAt(0, 1, 16), ClosedAt(1, 1, 16)};
  for (int restart = 0; restart < 2; ++restart) {
    Pass(absl::Seconds(20), {&w1});
    EXPECT_EQ(Status(id).generation(), 1u);
    EXPECT_EQ(Status(id).state(), v1::JOB_STATE_QUEUED);
    EXPECT_THAT(Status(id).reason(), HasSubstr("the next generation waits until server b:2"));
    EXPECT_THAT(Status(id).reason(), HasSubstr("(it has not answered since 1970-01-12T"));
    EXPECT_TRUE(w1.running().empty());
    EXPECT_TRUE(Ends("b:1").empty()) << "it has answered";
    w1.Disconnect(now_);
    Restart();
    ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  }
  Heartbeat("b:2");
  Pass(absl::Seconds(1), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(1));
  EXPECT_EQ(w1.running().begin()->second.start.group().first_step(), 16u);
  EXPECT_EQ(w1.running().begin()->first, (GroupKey{id, 0, 2}));
  EXPECT_TRUE(Ends("b:1").empty());
  EXPECT_TRUE(Ends("b:2").empty());
}

// While the servers are asked, a job that ran stays before those that wait, and keeps its slots for its next
// generation.
TEST_F(CoordinatorScaleTest, KeepsItsPlaceMeanwhile) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const auto submit = [this](const std::string& owner, ExampleGroups groups) {
    v1::SubmitRequest request = ExampleSubmission(owner, groups);
    request.mutable_job()->set_owner(owner);
    return *coordinator_->Submit(request, now_);
  };
  const std::string id = submit("anna", {2, 1});
  Pass(absl::Seconds(20), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(2));
  const std::string other = submit("bob", {1, 1});  // Bob has used less than Anna.
  Pass(absl::Seconds(1), {&w1});
  ASSERT_TRUE(Scale(id, 1).ok());
  w1.Receive(now_);
  coordinator_->Tick(now_ += absl::Milliseconds(100));
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_THAT(Status(id).reason(), HasSubstr("1st in the queue"));
  coordinator_->Tick(now_ += absl::Seconds(2));
  Pass(absl::Seconds(1), {&w1});
  ASSERT_THAT(w1.running(), SizeIs(2));
  EXPECT_EQ(w1.running().count({id, 0, 2}), 1u) << Log(id);
  EXPECT_EQ(Status(other).state(), v1::JOB_STATE_RUNNING) << "one slot is left for it";
}

// The coordinator tells servers to end a generation only once it has stored the request for another number of groups.
// If it lost that request in a crash, it would start the old groups again.
TEST_F(CoordinatorScaleTest, AsksNoServerBeforeTheWishIsStored) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1});
  Pass(absl::Seconds(1), {&w1});
  store_->FailWith(absl::InternalError("broken disk"));
  (void)Scale(id, 1);
  w1.Receive(now_);
  ASSERT_TRUE(w1.running().empty());
  EXPECT_TRUE(Ends("b:1").empty());
  store_->FailWith(absl::OkStatus());
  Pass(absl::Seconds(20), {&w1});
  EXPECT_EQ(Status(id).generation(), 2u);
}

// A job that is cancelled while a server is asked needs no answer. Answers that nobody asked for change nothing, and
// an absurd step harms no other job.
TEST_F(CoordinatorScaleTest, OnlyAnswersToQuestionsCount) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1});
  Pass(absl::Seconds(1), {&w1});
  ASSERT_TRUE(Scale(id, 1).ok());
  w1.Receive(now_);
  ASSERT_THAT(Ends("b:1"), SizeIs(1));
  EXPECT_EQ(Ends("b:1")[0].incarnation(), 2u);
  EXPECT_EQ(Ends("b:1")[0].job_key(), "s1");
  for (const uint32_t incarnation : {1, 3}) {
    v1::ServerHeartbeatRequest request = FakeServer("b:1");
    v1::ClosedGeneration* closed = request.add_closed();
    closed->set_job_id(id);
    closed->set_incarnation(incarnation);
    EXPECT_THAT(coordinator_->ServerHeartbeat(request, now_)->closing(), SizeIs(1));
    *closed->add_groups() = ClosedAt(0, 1, uint64_t{1} << 60);
    EXPECT_TRUE(coordinator_->ServerHeartbeat(request, now_).ok());
  }
  ASSERT_TRUE(coordinator_->Cancel(id, now_).ok());
  EXPECT_TRUE(Ends("b:1").empty());
}

// A user asks for another number of groups, but all groups finish before they leave. Then the job is evaluated as
// usual. The evaluation gets the number of a group of generation 1, so its start must be a later one.
TEST_F(CoordinatorScaleTest, GroupsThatFinishFirstEndTheJob) {
  FakeWorker w1("w1", 3);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1});
  Pass(absl::Seconds(1), {&w1});
  ASSERT_TRUE(Scale(id, 1).ok());
  Pass(absl::Seconds(2), {&w1});
  ASSERT_EQ(Status(id).generation(), 2u);
  ASSERT_TRUE(Scale(id, 3).ok());
  w1.End({id, 0, 2}, absl::OkStatus(), now_);
  Pass(absl::Seconds(1), {&w1});
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_EVALUATING);
  ASSERT_THAT(w1.running(), SizeIs(1));
  EXPECT_EQ(w1.running().begin()->first, (GroupKey{id, 1, 3})) << "start 1 of group 1 was in generation 1";
  EXPECT_THAT(Log(id), HasSubstr("all groups had finished before their number could change"));
}

}  // namespace
}  // namespace hooke
