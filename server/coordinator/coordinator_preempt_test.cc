// Running groups that leave because a job of higher priority needs their slots.

#include <gmock/gmock.h>

#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CoordinatorPreemptTest : public CoordinatorFixture {
 protected:
  std::string SubmitWith(uint32_t priority, ExampleGroups groups, bool preemptible = true) {
    v1::SubmitRequest request = ExampleSubmission(absl::StrCat("p", ++submissions_), groups);
    request.mutable_job()->set_priority(priority);
    request.mutable_job()->set_preemptible(preemptible);
    const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }
};

// The group of lower priority is asked to leave. Its job goes back to the queue with the reason, keeps its budget of
// restarts, and starts again when the other job has ended.
TEST_F(CoordinatorPreemptTest, MakesRoomAndGoesOnLater) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string low = SubmitWith(1, {1, 2});
  w1.Receive(now_);
  w1.Progress({low, 0, 1}, 7, now_);
  const std::string high = SubmitWith(5, {1, 2});
  EXPECT_EQ(Status(low).state(), v1::JOB_STATE_RUNNING) << "it has not left yet";
  w1.Receive(now_);
  EXPECT_EQ(w1.leaves(), 1u);
  EXPECT_THAT(w1.stop_reasons(), ElementsAre("made room for fashion-2 of priority 5"));
  Pass(absl::Seconds(2), {&w1});
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{low, 0, 1}, GroupKey{high, 0, 1}));
  EXPECT_EQ(Status(low).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Status(low).queue_position(), 1u);
  EXPECT_EQ(Status(low).reason(),
            "1st in the queue; made room for fashion-2 of priority 5; needs 2 slots; 0 free on w1 at hpc; 2 more when "
            "fashion-2 ends");
  EXPECT_EQ(Stored()[0].groups[0].failures, 0u);
  EXPECT_EQ(Stored()[0].groups[0].repeats, 0u);
  const int64_t started = Status(low).started_unix_ms();
  ASSERT_TRUE(coordinator_->Cancel(high, now_).ok());
  Pass(absl::Seconds(1), {&w1});
  EXPECT_EQ(w1.started().back(), (GroupKey{low, 0, 2}));
  EXPECT_EQ(Status(low).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Status(low).started_unix_ms(), started);
  EXPECT_THAT(Log(low), HasSubstr("group 0 at step 7: made room for fashion-2 of priority 5; starts again as start 2"));
}

// Only as many groups leave as must. The rest of the job goes on, and the group comes back when there is room.
TEST_F(CoordinatorPreemptTest, OnlyAsManyGroupsAsMustLeave) {
  FakeWorker w1("w1", 4);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string low = SubmitWith(0, {4, 1});
  w1.Receive(now_);
  const std::string high = SubmitWith(5, {1, 1});
  Pass(absl::Seconds(2), {&w1});
  EXPECT_EQ(w1.leaves(), 1u);
  EXPECT_EQ(w1.started().back(), (GroupKey{high, 0, 1}));
  EXPECT_EQ(Status(low).state(), v1::JOB_STATE_RUNNING);
  FakeWorker w2("w2", 1);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(1), {&w1, &w2});
  EXPECT_EQ(w2.started().size(), 1u);
  EXPECT_EQ(w2.started()[0].job_id, low);
  EXPECT_EQ(w2.started()[0].incarnation, 2u);
}

// No group leaves for a job of the same priority, for a job that another worker has room for, or if its own job is not
// preemptible. Slots of a cancelled job count as free, because they become free soon.
TEST_F(CoordinatorPreemptTest, NobodyLeavesInVain) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string low = SubmitWith(3, {1, 2}, /*preemptible=*/false);
  w1.Receive(now_);
  const std::string high = SubmitWith(5, {1, 2});
  Pass(absl::Seconds(5), {&w1});
  EXPECT_THAT(w1.stop_reasons(), IsEmpty());
  EXPECT_EQ(Status(high).reason(), "1st in the queue; needs 2 slots; 0 free on w1 at hpc; 2 more when fashion-1 ends");
  ASSERT_TRUE(coordinator_->Cancel(low, now_).ok());
  Pass(absl::Seconds(1), {&w1});
  EXPECT_EQ(w1.started().back(), (GroupKey{high, 0, 1}));
  SubmitWith(5, {1, 2});
  Pass(absl::Seconds(5), {&w1});
  FakeWorker w2("w2", 2);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(1), {&w1, &w2});
  EXPECT_EQ(w2.started().size(), 1u);
  const std::string last = SubmitWith(9, {1, 2});
  ASSERT_TRUE(coordinator_->Cancel(last, now_).ok());
  EXPECT_EQ(w1.leaves() + w2.leaves(), 0u);
  ASSERT_TRUE(coordinator_->Cancel(w2.started()[0].job_id, now_).ok());
  SubmitWith(9, {1, 2});
  Pass(absl::Seconds(1), {&w1, &w2});
  EXPECT_EQ(w2.started().size(), 2u);
}

// If the worker of a group that was asked to leave connects again, that group is asked again, and no other.
TEST_F(CoordinatorPreemptTest, SurvivesALostStream) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  for (FakeWorker* worker : {&w1, &w2}) ASSERT_TRUE(worker->Connect(*coordinator_, now_).ok());
  SubmitWith(1, {1, 2});
  const std::string low = SubmitWith(0, {1, 2});
  for (FakeWorker* worker : {&w1, &w2}) worker->Receive(now_);
  FakeWorker& asked = w1.started()[0].job_id == low ? w1 : w2;
  FakeWorker& other = &asked == &w1 ? w2 : w1;
  const std::string high = SubmitWith(5, {1, 2});
  asked.Disconnect(now_);
  ASSERT_TRUE(asked.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(2), {&w1, &w2});
  EXPECT_EQ(asked.started().back(), (GroupKey{high, 0, 1}));
  EXPECT_EQ(asked.leaves(), 1u);
  EXPECT_EQ(other.leaves(), 0u);
}

}  // namespace
}  // namespace hooke
