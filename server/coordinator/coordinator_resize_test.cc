// Jobs whose number of groups follows the room.

#include <gmock/gmock.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

struct Limits {
  uint32_t min = 1;
  uint32_t max = 3;
};

class CoordinatorResizeTest : public CoordinatorFixture {
 protected:
  // Submits a job of `count` groups with two ranks each.
  std::string SubmitWithin(uint32_t count, Limits limits = {}) {
    v1::SubmitRequest request = ExampleSubmission(absl::StrCat("limits", ++submissions_), {count, 2});
    request.mutable_job()->mutable_groups()->set_min(limits.min);
    request.mutable_job()->mutable_groups()->set_max(limits.max);
    const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }

  // Lets time pass while all groups on these workers train.
  void Train(absl::Duration time, const std::vector<FakeWorker*>& workers) {
    for (const absl::Duration end = now_.steady + time; now_.steady < end;) {
      Pass(absl::Milliseconds(500), workers);
      for (FakeWorker* worker : workers) {
        std::vector<GroupKey> keys;
        for (const auto& [key, run] : worker->running()) keys.push_back(key);
        for (const GroupKey& key : keys) worker->Progress(key, ++step_, now_);
      }
    }
  }

  absl::Status Scale(const std::string& job_id, uint32_t groups) {
    v1::ScaleJobRequest request;
    request.set_job_id(job_id);
    request.set_groups(groups);
    return coordinator_->Scale(request, now_).status();
  }

  void Connect(const std::vector<FakeWorker*>& workers) {
    for (FakeWorker* worker : workers) ASSERT_TRUE(worker->Connect(*coordinator_, now_).ok());
  }

  uint64_t step_ = 1000;  // More steps than the job has. So the coordinator has no estimate of the job's end.
  FakeWorker w1_{"w1", 2}, w2_{"w2", 4};
};

TEST_F(CoordinatorResizeTest, GrowsAndShrinksWithItsWorkers) {
  Connect({&w1_});
  const std::string id = SubmitWithin(1);
  Train(absl::Seconds(90), {&w1_});
  EXPECT_THAT(Status(id).groups(), SizeIs(1));
  Connect({&w2_});
  Train(absl::Seconds(29), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(1)) << "the room may go again";
  Train(absl::Seconds(5), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3));
  EXPECT_EQ(w1_.running().size() + w2_.running().size(), 3u);
  EXPECT_EQ(Status(id).generation(), 2u);
  EXPECT_THAT(Log(id), HasSubstr("grows from 1 to 3 groups: the cluster has room"));
  EXPECT_THAT(Status(id).notices().begin()->text(), HasSubstr("grows"));
  w2_.Crash(now_);
  Train(absl::Seconds(54), {&w1_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3)) << "two changes are a minute apart";
  Train(absl::Seconds(12), {&w1_});
  EXPECT_THAT(Status(id).groups(), SizeIs(1));
  EXPECT_THAT(w1_.running(), SizeIs(1));
  EXPECT_EQ(Status(id).generation(), 3u);
  EXPECT_THAT(Log(id), HasSubstr("shrinks from 3 to 1 group: the cluster has had no room for 2 of them for "));
}

TEST_F(CoordinatorResizeTest, BeginsWithWhatFits) {
  Connect({&w2_});
  const std::string id = SubmitWithin(3);
  Train(absl::Seconds(4), {&w2_});
  EXPECT_THAT(w2_.running(), SizeIs(0)) << "more room may come";
  EXPECT_THAT(Status(id).groups(0).reason(), HasSubstr("if that stays so, it soon begins with fewer"));
  Train(absl::Seconds(3), {&w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(2));
  EXPECT_THAT(w2_.running(), SizeIs(2));
  EXPECT_EQ(Status(id).generation(), 1u);
  EXPECT_THAT(Log(id), HasSubstr("begins with 2 groups instead of 3: the cluster has room for no more"));
  Connect({&w1_});
  Train(absl::Seconds(40), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3));
}

// Workers connect one after another, for example to a coordinator that has been started again.
TEST_F(CoordinatorResizeTest, BeginsWhenAllItsWorkersHaveConnected) {
  const std::string id = SubmitWithin(3);
  Restart();
  Connect({&w1_});
  Train(absl::Seconds(2), {&w1_});
  EXPECT_THAT(w1_.running(), SizeIs(0));
  Connect({&w2_});
  Train(absl::Seconds(1), {&w1_, &w2_});
  EXPECT_EQ(w1_.running().size() + w2_.running().size(), 3u);
  EXPECT_THAT(Log(id), Not(HasSubstr("begins with")));
}

// Groups of lower priority leave one after another. The job begins when all are gone, so none has left in vain.
TEST_F(CoordinatorResizeTest, BeginsWhenAllHaveLeftForIt) {
  Connect({&w1_, &w2_});
  const std::string low = Submit({3, 2});
  Train(absl::Seconds(1), {&w1_, &w2_});
  ASSERT_THAT(w2_.running(), SizeIs(2));
  v1::SubmitRequest request = ExampleSubmission("high", {3, 2});
  request.mutable_job()->set_priority(5);
  request.mutable_job()->mutable_groups()->set_min(1);
  request.mutable_job()->mutable_groups()->set_max(3);
  const std::string high = *coordinator_->Submit(request, now_);
  w1_.Receive(now_);  // The group there leaves at once, those at the other worker 20 s later.
  for (int i = 0; i < 40; ++i) {
    w2_.Receive(now_, /*linger=*/true);
    Train(absl::Milliseconds(500), {&w1_});
    w2_.Heartbeat(now_);
  }
  EXPECT_THAT(w1_.running(), SizeIs(0)) << Log(high);
  EXPECT_EQ(w2_.leaves(), 2u);
  Train(absl::Seconds(2), {&w1_, &w2_});
  std::vector<GroupKey> keys;
  for (const auto& [key, run] : w2_.running()) keys.push_back(key);
  for (const GroupKey& key : keys) {
    if (key.job_id == low) w2_.End(key, absl::CancelledError("left"), now_);
  }
  Train(absl::Seconds(2), {&w1_, &w2_});
  EXPECT_EQ(Status(high).state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(Status(high).groups(), SizeIs(3)) << Log(high);
  EXPECT_EQ(w1_.running().size() + w2_.running().size(), 3u);
  EXPECT_THAT(Log(high), Not(HasSubstr("begins with")));
}

// While a server is silent, groups could not go on after a change of their number. So the number stays.
TEST_F(CoordinatorResizeTest, StaysWhileAServerIsSilent) {
  Connect({&w1_});
  const std::string id = SubmitWithin(1);
  Train(absl::Seconds(1), {&w1_});
  Connect({&w2_});
  Pass(absl::Seconds(60), {&w1_, &w2_}, /*server_lives=*/false);
  EXPECT_EQ(Status(id).generation(), 1u);
  EXPECT_THAT(w1_.running(), SizeIs(1)) << Log(id);
  EXPECT_EQ(w1_.leaves(), 0u);
  Train(absl::Seconds(40), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3)) << Log(id);
}

// A group that hangs cannot leave, so the number of groups stays.
TEST_F(CoordinatorResizeTest, StaysWhileAGroupIsSilent) {
  Connect({&w1_});
  const std::string id = SubmitWithin(1);
  Train(absl::Seconds(1), {&w1_});
  Connect({&w2_});
  w1_.Silence({id, 0, 1}, true, now_);
  Pass(absl::Seconds(60), {&w1_, &w2_});
  EXPECT_EQ(w1_.leaves(), 0u) << Log(id);
  w1_.Silence({id, 0, 1}, false, now_);
  Train(absl::Seconds(40), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3)) << Log(id);
}

// A group on a drained worker would find no room there after a change. So the number of groups stays.
TEST_F(CoordinatorResizeTest, StaysWhileAGroupIsOnADrainedWorker) {
  Connect({&w1_});
  const std::string id = SubmitWithin(1);
  Train(absl::Seconds(1), {&w1_});
  ASSERT_TRUE(coordinator_->Drain("w1", v1::DRAIN_FINISH, now_).ok());
  Connect({&w2_});
  Train(absl::Seconds(60), {&w1_, &w2_});
  EXPECT_EQ(Status(id).generation(), 1u) << Log(id);
  ASSERT_TRUE(coordinator_->Drain("w1", v1::DRAIN_NONE, now_).ok());
  Train(absl::Seconds(40), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3)) << Log(id);
}

// Workers of a batch system come only for groups that wait. So a job there keeps its number.
TEST_F(CoordinatorResizeTest, StaysAtASiteWithABatchSystem) {
  v1::SiteHeartbeatRequest agent;
  agent.set_site("hpc");
  agent.set_instance("i1");
  ASSERT_TRUE(coordinator_->SiteHeartbeat(agent, now_).ok());
  v1::SubmitRequest request = ExampleSubmission("batch", {3, 2});
  request.mutable_job()->mutable_groups()->set_site("hpc");
  request.mutable_job()->mutable_groups()->set_min(1);
  request.mutable_job()->mutable_groups()->set_max(4);
  Connect({&w2_});
  const std::string id = *coordinator_->Submit(request, now_);
  Train(absl::Seconds(1), {&w2_});
  EXPECT_THAT(w2_.running(), SizeIs(2)) << "groups start one by one";
  Train(absl::Seconds(100), {&w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3)) << "one waits";
  FakeWorker large("w3", 4);
  Connect({&large});
  Train(absl::Seconds(100), {&w2_, &large});
  EXPECT_THAT(Status(id).groups(), SizeIs(3)) << Log(id);
  EXPECT_EQ(Status(id).generation(), 1u);
}

TEST_F(CoordinatorResizeTest, WaitsForItsLeastNumber) {
  Connect({&w1_});
  const std::string id = SubmitWithin(3, {2, 3});
  Train(absl::Seconds(100), {&w1_});
  EXPECT_THAT(Status(id).groups(), SizeIs(2)) << "one trains, and one waits";
  EXPECT_THAT(w1_.running(), SizeIs(1));
}

// A group that waits for another site, such as one in Slurm's queue, could not use the room here.
TEST_F(CoordinatorResizeTest, GrowsBesideGroupsThatWaitElsewhere) {
  Connect({&w1_});
  const std::string id = SubmitWithin(1);
  v1::SubmitRequest far = ExampleSubmission("far", {1, 2});
  far.mutable_job()->mutable_groups()->set_site("far");
  ASSERT_TRUE(coordinator_->Submit(far, now_).ok());
  Connect({&w2_});
  Train(absl::Seconds(40), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3));
}

// Room for which another job waits is not for more groups.
TEST_F(CoordinatorResizeTest, LeavesRoomToJobsThatWait) {
  Connect({&w2_});
  const std::string id = SubmitWithin(1);
  const std::string large = Submit({1, 4});
  Train(absl::Seconds(100), {&w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(1));
  ASSERT_TRUE(coordinator_->Cancel(large, now_).ok());
  Train(absl::Seconds(40), {&w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(2));
}

// The groups of a job that shrinks leave one after another. A job that waits gets none of their slots.
TEST_F(CoordinatorResizeTest, KeepsItsSlotsMeanwhile) {
  FakeWorker w3("w3", 2);
  Connect({&w1_, &w2_});
  const std::string id = SubmitWithin(3);
  Train(absl::Seconds(1), {&w1_, &w2_});
  ASSERT_EQ(w1_.running().size() + w2_.running().size(), 3u);
  w1_.Crash(now_);
  const std::string other = Submit({1, 2});
  Train(absl::Seconds(44), {&w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(2)) << Log(id);
  EXPECT_EQ(Status(id).generation(), 2u);
  EXPECT_THAT(w2_.running(), SizeIs(2));
  for (const auto& [key, run] : w2_.running()) EXPECT_EQ(key.job_id, id);
  EXPECT_EQ(Status(other).state(), v1::JOB_STATE_QUEUED);
  Connect({&w3});
  Train(absl::Seconds(1), {&w2_, &w3});
  EXPECT_THAT(w3.running(), SizeIs(1));
}

// A group that dies and starts again is no reason for a change.
TEST_F(CoordinatorResizeTest, ARestartIsNoReason) {
  Connect({&w1_, &w2_});
  const std::string id = SubmitWithin(3);
  Train(absl::Seconds(1), {&w1_, &w2_});
  for (int i = 0; i < 12; ++i) {
    w1_.End(w1_.running().begin()->first, absl::AbortedError("a rank died"), now_);
    Train(absl::Seconds(10), {&w1_, &w2_});
    ASSERT_THAT(w1_.running(), SizeIs(1)) << Log(id);
  }
  EXPECT_EQ(Status(id).generation(), 1u);
}

TEST_F(CoordinatorResizeTest, AUsersNumberStays) {
  Connect({&w1_, &w2_});
  const std::string id = SubmitWithin(3, {1, 4});
  Train(absl::Seconds(1), {&w1_, &w2_});
  const absl::Status refused = Scale(id, 5);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("5 groups; the job file allows 1 to 4"));
  ASSERT_TRUE(Scale(id, 2).ok());
  Train(absl::Seconds(200), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(2)) << "there is room for a third";
  EXPECT_THAT(Log(id), Not(HasSubstr("grows")));
  // Room goes, and comes back.
  FakeWorker& with_one = w1_.running().empty() ? w2_ : w1_;
  FakeWorker& other = &with_one == &w1_ ? w2_ : w1_;
  with_one.Crash(now_);
  other.Crash(now_);
  Connect({&w1_});
  Train(absl::Seconds(100), {&w1_});
  EXPECT_THAT(Status(id).groups(), SizeIs(1));
  Connect({&w2_});
  Train(absl::Seconds(100), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3));
}

// A restarted coordinator does not change the number again at once.
TEST_F(CoordinatorResizeTest, PausesAfterARestart) {
  Connect({&w1_});
  const std::string id = SubmitWithin(1);
  Train(absl::Seconds(1), {&w1_});
  Connect({&w2_});
  Train(absl::Seconds(40), {&w1_, &w2_});
  ASSERT_EQ(Status(id).generation(), 2u);
  Restart();
  Connect({&w1_});
  Train(absl::Seconds(58), {&w1_});
  EXPECT_EQ(Status(id).generation(), 2u);
  Train(absl::Seconds(20), {&w1_});
  EXPECT_EQ(Status(id).generation(), 3u);
  EXPECT_THAT(Status(id).groups(), SizeIs(1));
}

}  // namespace
}  // namespace hooke
