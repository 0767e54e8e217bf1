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

  uint64_t step_ = 1000;  // More than the job has, so that nobody knows when it ends.
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
  Train(absl::Seconds(1), {&w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(2));
  EXPECT_THAT(w2_.running(), SizeIs(2));
  EXPECT_EQ(Status(id).generation(), 1u);
  EXPECT_THAT(Log(id), HasSubstr("begins with 2 groups instead of 3: the cluster has room for no more"));
  Connect({&w1_});
  Train(absl::Seconds(40), {&w1_, &w2_});
  EXPECT_THAT(Status(id).groups(), SizeIs(3));
}

TEST_F(CoordinatorResizeTest, WaitsForItsLeastNumber) {
  Connect({&w1_});
  const std::string id = SubmitWithin(3, {2, 3});
  Train(absl::Seconds(100), {&w1_});
  EXPECT_THAT(Status(id).groups(), SizeIs(2)) << "one trains, and one waits";
  EXPECT_THAT(w1_.running(), SizeIs(1));
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
