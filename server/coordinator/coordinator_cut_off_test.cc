// Shows what becomes of groups whose workers are cut off for longer than their lease, and come back while they still
// run these groups. No group is started while its last start may come back with its worker.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"

namespace hooke {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Worker w1 has room for two groups, and w2 for one. Group 0 runs on w2, and group 1 on w1.
class CutOffTest : public CoordinatorFixture {
 protected:
  void StartOnBoth() {
    ASSERT_TRUE(w1_.Connect(*coordinator_, now_).ok());
    ASSERT_TRUE(w2_.Connect(*coordinator_, now_).ok());
    id_ = Submit({2, 2});
    w1_.Receive(now_);
    w2_.Receive(now_);
    ASSERT_THAT(w2_.started(), ElementsAre(GroupKey{id_, 0, 1}));
    ASSERT_THAT(w1_.started(), ElementsAre(GroupKey{id_, 1, 1}));
    w1_.Progress({id_, 1, 1}, 20, now_);
    w2_.Progress({id_, 0, 1}, 20, now_);
  }

  void CutOffBoth() {
    StartOnBoth();
    w1_.Disconnect(now_);
    w2_.Disconnect(now_);
    Pass(absl::Seconds(30), {});
    ASSERT_EQ(State(0), v1::GROUP_STATE_WAITING);
    ASSERT_EQ(State(1), v1::GROUP_STATE_WAITING);
  }

  void Back(FakeWorker& worker) {
    ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
    worker.Receive(now_);
  }

  bool Knows(const std::string& worker) {
    const std::vector<v1::NodeStatus> nodes = coordinator_->Nodes(now_);
    return std::any_of(nodes.begin(), nodes.end(), [&](const v1::NodeStatus& node) { return node.name() == worker; });
  }

  // Both workers come back, one half a second after the other. Each goes on with its group, and no group starts again.
  void BackOneAfterAnother() {
    Back(w1_);
    Pass(absl::Milliseconds(500), {&w1_});
    EXPECT_EQ(State(1), v1::GROUP_STATE_RUNNING);
    EXPECT_EQ(Status(id_).groups(0).reason(),
              "worker w1 is back, and worker w2, which may still run the group, has 5s to come back, too");
    Back(w2_);
    Pass(absl::Seconds(20), {&w1_, &w2_});
    EXPECT_EQ(State(0), v1::GROUP_STATE_RUNNING);
    EXPECT_EQ(w1_.started().size(), 1u);
    EXPECT_EQ(w2_.started().size(), 1u);
    EXPECT_THAT(w1_.stop_reasons(), IsEmpty());
    EXPECT_THAT(w2_.stop_reasons(), IsEmpty());
  }

  v1::GroupState State(int group) { return Status(id_).groups(group).state(); }

  FakeWorker w1_{"w1", 4}, w2_{"w2", 2};
  std::string id_;
};

// Two workers that were cut off come back, one half a second after the other. Each goes on with its group. Nothing is
// started again, although the first one has room for the group of the second.
TEST_F(CutOffTest, NothingStartsTwiceWhenWorkersComeBackOneAfterAnother) {
  CutOffBoth();
  BackOneAfterAnother();
  EXPECT_THAT(Log(id_), HasSubstr("worker w2 is back, and with it group 0 (start 1)"));
  w2_.Progress({id_, 0, 1}, 30, now_);
  w2_.End({id_, 0, 1}, absl::OkStatus(), now_);
  EXPECT_EQ(State(0), v1::GROUP_STATE_FINISHED);
}

// A group that is taken back has lost nothing: that its worker was away does not count as a failure of it.
TEST_F(CutOffTest, TakingBackCountsAsNoFailure) {
  StartOnBoth();
  for (int i = 0; i < 30; ++i) {
    w2_.Disconnect(now_);
    Pass(absl::Seconds(3), {&w1_});
    // The other worker is lost, too, so that it has no room for the group.
    w1_.Disconnect(now_);
    Pass(absl::Seconds(15), {});
    Back(w2_);
    Back(w1_);
    ASSERT_EQ(State(0), v1::GROUP_STATE_RUNNING);
    ASSERT_EQ(State(1), v1::GROUP_STATE_RUNNING);
  }
  EXPECT_EQ(w2_.started().size(), 1u);
}

// The wait for a worker that does not come back is short, and there is one wait only, however often others come and go.
TEST_F(CutOffTest, WaitsOnceAndBriefly) {
  CutOffBoth();
  Back(w1_);
  Pass(absl::Seconds(4), {&w1_});
  EXPECT_EQ(w1_.started().size(), 1u);
  w1_.Disconnect(now_);
  Pass(absl::Seconds(12), {});
  Back(w1_);
  Pass(absl::Seconds(1), {&w1_});
  EXPECT_THAT(w1_.started(), ElementsAre(GroupKey{id_, 1, 1}, GroupKey{id_, 0, 2}));
  // The one that comes back late is told to end what it still runs.
  Back(w2_);
  EXPECT_THAT(w2_.stop_reasons(), ElementsAre("start 1 was replaced by start 2"));
}

// After an hour the coordinator forgets lost workers. Groups still go on in the same start when the site is back.
TEST_F(CutOffTest, NothingStartsTwiceAfterAnHourAway) {
  CutOffBoth();
  Pass(absl::Hours(1) + absl::Seconds(1), {});
  ASSERT_FALSE(Knows("w1") || Knows("w2"));
  ASSERT_EQ(State(0), v1::GROUP_STATE_WAITING);
  ASSERT_EQ(State(1), v1::GROUP_STATE_WAITING);
  BackOneAfterAnother();
  w2_.Progress({id_, 0, 1}, 30, now_);
  w2_.End({id_, 0, 1}, absl::OkStatus(), now_);
  EXPECT_EQ(State(0), v1::GROUP_STATE_FINISHED);
}

// Groups that have ended meanwhile start again where they ran, as soon as the site is back.
TEST_F(CutOffTest, GroupsThatHaveEndedStartAgainAfterAnHourAway) {
  CutOffBoth();
  Pass(absl::Hours(1) + absl::Seconds(1), {});
  w1_.Crash(now_);
  w2_.Crash(now_);
  Back(w2_);
  Back(w1_);
  Pass(absl::Seconds(1), {&w1_, &w2_});
  EXPECT_NE(State(0), v1::GROUP_STATE_WAITING);
  EXPECT_NE(State(1), v1::GROUP_STATE_WAITING);
  EXPECT_EQ(w1_.started().size() + w2_.started().size(), 4u);
}

// A worker without groups may be one that was cut off an hour ago, too. It does not take the group of another one that
// comes back a moment later.
TEST_F(CutOffTest, AWorkerWithoutGroupsDoesNotTakeOneAfterAnHourAway) {
  CutOffBoth();
  Pass(absl::Hours(1) + absl::Seconds(1), {});
  FakeWorker w3("w3", 2);
  Back(w3);
  Pass(absl::Seconds(4), {&w3});
  EXPECT_THAT(w3.started(), IsEmpty());
  Back(w2_);
  EXPECT_EQ(State(0), v1::GROUP_STATE_RUNNING);
  // The other worker stays away, so w3 runs its group.
  Pass(absl::Seconds(2), {&w2_, &w3});
  EXPECT_THAT(w3.started(), ElementsAre(GroupKey{id_, 1, 2}));
  EXPECT_THAT(w2_.stop_reasons(), IsEmpty());
}

// A worker that nobody knew, or that of a new batch job, was not cut off. No group waits for others because of it.
TEST_F(CutOffTest, ANewWorkerGetsTheGroupsAtOnce) {
  CutOffBoth();
  FakeWorker w3("w3", 2);
  Back(w3);
  EXPECT_EQ(w3.started().size(), 1u);
  Pass(absl::Hours(1) + absl::Seconds(1), {&w3});
  FakeWorker batch("n0-4211", 2);
  batch.SetOnlyJob(id_);
  Back(batch);
  EXPECT_EQ(batch.started().size(), 1u);
}

// A worker that comes back without the group tells that it has ended: the group starts at once.
TEST_F(CutOffTest, StartsAtOnceIfTheGroupHasEnded) {
  CutOffBoth();
  Back(w1_);
  w2_.Crash(now_);
  Back(w2_);
  Pass(absl::Milliseconds(300), {&w1_, &w2_});
  EXPECT_THAT(w1_.started(), ElementsAre(GroupKey{id_, 1, 1}, GroupKey{id_, 0, 2}));
}

// A group may end while its worker is cut off. The worker tells that when it is back, and the group starts again.
TEST_F(CutOffTest, TakesTheEndThatCameMeanwhile) {
  CutOffBoth();
  w2_.End({id_, 0, 1}, absl::CancelledError("ended here"), now_);
  Back(w2_);
  Pass(absl::Seconds(1), {&w2_});
  EXPECT_THAT(w2_.started(), ElementsAre(GroupKey{id_, 0, 1}, GroupKey{id_, 0, 2}));
  EXPECT_THAT(Log(id_), HasSubstr("failed (ended here); starts again in 500ms as start 2"));
}

// While the number of groups changes, a group that was given up counts as ended: servers refuse it.
TEST_F(CutOffTest, StopsAGroupWhoseGenerationEnds) {
  CutOffBoth();
  v1::ScaleJobRequest scale;
  scale.set_job_id(id_);
  scale.set_groups(1);
  ASSERT_TRUE(coordinator_->Scale(scale, now_).ok());
  Back(w2_);
  Back(w1_);
  for (const FakeWorker* worker : {&w1_, &w2_}) {
    ASSERT_EQ(worker->stop_reasons().size(), 1u);
    EXPECT_THAT(worker->stop_reasons(), Each(HasSubstr("start 1 was")));
  }
}

}  // namespace
}  // namespace hooke
