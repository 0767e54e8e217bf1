// Workers that users drain, and workers that end: which groups they keep, which leave, and what a restart of the
// coordinator changes.

#include <gmock/gmock.h>

#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CoordinatorDrainTest : public CoordinatorFixture {
 protected:
  void Drain(const std::string& worker, v1::Drain drain) {
    const absl::StatusOr<v1::NodeStatus> node = coordinator_->Drain(worker, drain, now_);
    ASSERT_TRUE(node.ok()) << node.status();
    EXPECT_EQ(node->name(), worker);
    EXPECT_EQ(node->drain(), drain);
  }
  v1::NodeStatus Node(const std::string& name) {
    for (const v1::NodeStatus& node : coordinator_->Nodes(now_)) {
      if (node.name() == name) return node;
    }
    return {};
  }
};

// A drained worker keeps its group until that ends, and gets no other. Taken back, it gets groups again.
TEST_F(CoordinatorDrainTest, GetsNoNewGroups) {
  FakeWorker w1("w1", 2);
  FakeWorker w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string first = Submit({1, 1});
  w1.Receive(now_);
  Drain("w1", v1::DRAIN_FINISH);
  Drain("w1", v1::DRAIN_FINISH);
  const std::string second = Submit({1, 1});
  Pass(absl::Seconds(2), {&w1});
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{first, 0, 1}));
  EXPECT_TRUE(w1.stop_reasons().empty());
  EXPECT_EQ(Status(second).state(), v1::JOB_STATE_QUEUED);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(1), {&w1, &w2});
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{second, 0, 1}));
  w1.End({first, 0, 1}, absl::OkStatus(), now_);
  Pass(absl::Seconds(1), {&w1, &w2});
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{second, 0, 1}, GroupKey{first, 1, 1})) << "the evaluation";
  EXPECT_EQ(Node("w1").slots_used(), 0u);
  Drain("w1", v1::DRAIN_NONE);
  const std::string third = Submit({1, 2});
  w1.Receive(now_);
  EXPECT_THAT(w1.running().begin()->first, (GroupKey{third, 0, 1}));
}

// Drained NOW, a worker ends its groups. Each starts elsewhere, but only after its end, and its end is no failure.
TEST_F(CoordinatorDrainTest, GroupsLeaveAtOnce) {
  FakeWorker w1("w1", 2);
  FakeWorker w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 7, now_);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  Drain("w1", v1::DRAIN_NOW);
  w1.Receive(now_, /*linger=*/true);
  Pass(absl::Seconds(1), {&w2});
  EXPECT_TRUE(w2.started().empty());
  w1.Receive(now_);
  Pass(absl::Seconds(1), {&w1, &w2});
  EXPECT_TRUE(w1.running().empty());
  EXPECT_THAT(w1.stop_reasons(), ElementsAre("worker w1 is drained"));
  EXPECT_EQ(w1.leaves(), 1u);
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{id, 0, 2}));
  EXPECT_EQ(Stored()[0].groups[0].failures, 0u);
  EXPECT_THAT(Log(id), HasSubstr("group 0 at step 7: worker w1 is drained; starts again as start 2"));
}

// A drain survives a restart of the coordinator, and with it the stop of groups. It also waits for a worker that is
// away.
TEST_F(CoordinatorDrainTest, SurvivesARestart) {
  FakeWorker w1("w1", 2);
  FakeWorker w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  Drain("w1", v1::DRAIN_NOW);
  w1.Disconnect(now_);
  Restart();
  EXPECT_EQ(Node("w1").drain(), v1::DRAIN_NOW);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(1), {&w1});
  EXPECT_TRUE(w1.running().empty());
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_WAITING);
  w1.Disconnect(now_);
  Pass(absl::Hours(2), {});
  EXPECT_EQ(Node("w1").drain(), v1::DRAIN_NOW);
  Drain("w1", v1::DRAIN_NONE);
  Restart();
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  EXPECT_EQ(Node("w2").drain(), v1::DRAIN_NONE);
  EXPECT_EQ(Node("w1").name(), "") << "nobody needs it any more";
}

// A group on several workers leaves all of them if one is drained.
TEST_F(CoordinatorDrainTest, AGroupOfSeveralWorkersLeavesThemAll) {
  FakeWorker a("a", 1);
  FakeWorker b("b", 1);
  FakeWorker c("c", 1);
  a.SetAddress("10.0.0.1");
  b.SetAddress("10.0.0.2");
  c.SetAddress("10.0.0.3");
  ASSERT_TRUE(a.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(b.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  Pass(absl::Seconds(1), {&a, &b});
  ASSERT_TRUE(c.Connect(*coordinator_, now_).ok());
  Drain("b", v1::DRAIN_NOW);
  Pass(absl::Seconds(1), {&a, &b, &c});
  EXPECT_THAT(b.started(), ElementsAre(GroupKey{id, 0, 1}));
  EXPECT_THAT(a.started(), ElementsAre(GroupKey{id, 0, 1}, GroupKey{id, 0, 2}));
  EXPECT_THAT(c.started(), ElementsAre(GroupKey{id, 0, 2}));
}

// A worker that is about to end gets no more groups. Those that it runs leave, and their ends are no failures. But an
// error that no new try can mend still fails the job.
TEST_F(CoordinatorDrainTest, GroupsLeaveAWorkerThatIsAboutToEnd) {
  FakeWorker w1("w1", 4), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2}), bad = Submit({1, 2});
  w1.Receive(now_);
  EXPECT_TRUE(w1.AnnounceEnd(now_).ok());
  EXPECT_TRUE(w1.AnnounceEnd(now_).ok());
  w1.Receive(now_, /*linger=*/true);
  EXPECT_THAT(w1.stop_reasons(), testing::Each("worker w1 ends"));
  EXPECT_EQ(w1.leaves(), w1.stop_reasons().size());
  w1.End({id, 0, 1}, absl::CancelledError("left after step 7, as asked"), now_);
  w1.End({bad, 0, 1}, absl::InvalidArgumentError("no such file"), now_);
  Pass(absl::Seconds(2), {&w1});
  EXPECT_EQ(w1.started().size(), 2u) << "started on a worker that ends";
  EXPECT_THAT(Log(id), HasSubstr("worker w1 ends; starts again as start 2"));
  EXPECT_EQ(Stored()[0].groups[0].failures, 0u);
  EXPECT_EQ(Status(bad).state(), v1::JOB_STATE_FAILED);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  w2.Receive(now_);
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{id, 0, 2}));
}

// A worker that ends in good order is gone at once: nobody waits for its lease. What it still had starts elsewhere, and
// another daemon may have its name.
TEST_F(CoordinatorDrainTest, AWorkerThatEndsIsNotWaitedFor) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  EXPECT_TRUE(w1.SayGoodbye(now_).ok());
  w2.Receive(now_);
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{id, 0, 2}));
  EXPECT_THAT(Log(id), HasSubstr("lost (worker w1 has ended); starts again at once"));
  Pass(absl::Seconds(20), {&w2});
  EXPECT_THAT(Log(id), testing::Not(HasSubstr("worker w1 has not answered")));
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Submit({1, 2});
  w1.Receive(now_);
  EXPECT_EQ(w1.started().size(), 2u);
}

// A worker that nobody knows is an error, and so is a drain that says nothing. If the disk fails, the error says that
// the drain is not stored.
TEST_F(CoordinatorDrainTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(coordinator_->Drain("w1", v1::DRAIN_FINISH, now_).status(),
            absl::NotFoundError("no worker w1: `hooke nodes` lists them"));
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  EXPECT_EQ(coordinator_->Drain("w1", v1::DRAIN_UNSPECIFIED, now_).status().code(), absl::StatusCode::kInvalidArgument);
  store_->FailWith(absl::InternalError("broken disk"));
  EXPECT_EQ(coordinator_->Drain("w1", v1::DRAIN_FINISH, now_).status().message(),
            "worker w1 gets no more groups, but that could not be stored yet: broken disk: see to the coordinator's "
            "disk, and say it again");
  store_->FailWith(absl::OkStatus());
  Pass(absl::Seconds(2), {&w1});
  w1.Disconnect(now_);
  Restart();
  EXPECT_EQ(Node("w1").drain(), v1::DRAIN_FINISH) << "stored later";
}

}  // namespace
}  // namespace hooke
