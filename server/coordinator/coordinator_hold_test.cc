// Groups that end in the same way again and again: when they are held, what users see, and how they go on.

#include <gmock/gmock.h>

#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CoordinatorHoldTest : public CoordinatorFixture {
 protected:
  // Lets the group that the worker runs print some lines and end, and lets its next start come.
  void Die(FakeWorker& worker, const absl::Status& how, std::vector<FakeWorker*> alive = {}) {
    ASSERT_THAT(worker.running(), SizeIs(1));
    const GroupKey key = worker.running().begin()->first;
    worker.Log(key, absl::StrCat("group 0 rank 0: start ", key.incarnation, " says why"), now_);
    for (int i = 0; i < 20; ++i) worker.Log(key, "group 0 mpirun: something has ended", now_);
    worker.End(key, how, now_);
    if (alive.empty()) alive = {&worker};
    Pass(absl::Seconds(6), alive);
  }
};

// After three ends in the same way the group is held with its last lines, though numbers in the messages differ. That
// survives a restart of the coordinator. A user's word lets it start again, with a new budget.
TEST_F(CoordinatorHoldTest, IsHeldUntilAUserSaysGoOn) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  for (int i = 0; i < 3; ++i) Die(w1, absl::AbortedError(absl::StrCat("rank 0 (pid 4", i, "): exit status 7")));
  EXPECT_THAT(w1.started(), SizeIs(3));
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_HELD);
  const std::string reason =
      "held: it ended 3 times in a row in the same way at step 0: rank 0 (pid 42): exit status 7";
  EXPECT_EQ(Status(id).reason(),
            absl::StrCat("group 0 is ", reason, "; `hooke resume fashion-1` or `hooke cancel fashion-1`"));
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_HELD);
  EXPECT_EQ(Status(id).groups(0).reason(), reason);
  Pass(absl::Hours(1), {&w1});
  w1.Disconnect(now_);
  Restart();
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(10), {&w1});
  EXPECT_THAT(w1.started(), SizeIs(3));
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_HELD);
  EXPECT_THAT(Status(id).groups(0).last_lines(), ElementsAre("group 0 rank 0: start 3 says why"));

  const auto resumed = coordinator_->Resume(id, now_);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->groups, 1u);
  w1.Receive(now_);
  EXPECT_EQ(w1.started().back(), (GroupKey{id, 0, 4}));
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(Status(id).groups(0).last_lines(), IsEmpty());
  EXPECT_THAT(Log(id), HasSubstr("resumed by the user: 1 group goes on"));
  for (int i = 0; i < 2; ++i) Die(w1, absl::AbortedError("rank 0: exit status 7"));
  EXPECT_EQ(w1.started().back(), (GroupKey{id, 0, 6})) << "it has its whole budget again";
}

// Ends in different ways, ends with steps between them, and losses do not hold a group.
TEST_F(CoordinatorHoldTest, OtherEndsDoNotHold) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  for (int i = 0; i < 4; ++i) Die(w1, absl::AbortedError(i % 2 == 0 ? "exit status 1" : "exit status 2"));
  for (uint64_t i = 1; i < 5; ++i) {
    w1.Progress(w1.running().begin()->first, i, now_);
    Die(w1, absl::AbortedError("exit status 1"));
  }
  for (int i = 0; i < 3; ++i) {
    w1.Crash(now_);
    ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
    Pass(absl::Seconds(6), {&w1});
  }
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(w1.running(), SizeIs(1));
}

// Rank 0 dies before it has reported a step, but the report of another rank tells that the group made some.
TEST_F(CoordinatorHoldTest, AnotherRankMaySayHowFarTheGroupCame) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  for (uint64_t step = 1; step <= 5; ++step) {
    ASSERT_THAT(w1.running(), SizeIs(1));
    v1::RankEvent progress;
    progress.mutable_progress()->set_step(step);
    w1.Send(w1.running().begin()->first, 1, progress, now_);
    Die(w1, absl::AbortedError("rank 0: ended by signal 9"));
  }
  EXPECT_THAT(w1.started(), SizeIs(6));
}

// A held group does not hold the others. Once these have finished, the job is held, and it can be cancelled.
TEST_F(CoordinatorHoldTest, OthersGoOn) {
  FakeWorker w1("w1", 1);
  FakeWorker w2("w2", 1);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 1});
  w1.Receive(now_);
  for (int i = 0; i < 3; ++i) Die(w1, absl::AbortedError("exit status 7"));
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_HELD);
  EXPECT_EQ(w1.started().back(), (GroupKey{id, 1, 1})) << "its slot is free for another group";
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  w1.End({id, 1, 1}, absl::OkStatus(), now_);
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_HELD);
  ASSERT_TRUE(coordinator_->Cancel(id, now_).ok());
  EXPECT_EQ(Status(id).groups(0).state(), v1::GROUP_STATE_CANCELLED);
  EXPECT_EQ(coordinator_->Resume(id, now_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(coordinator_->Resume("no-1", now_).status().code(), absl::StatusCode::kNotFound);
}

// An evaluation of the center that ends in the same way several times is held, too. After ResumeJob it starts again as
// an evaluation.
TEST_F(CoordinatorHoldTest, HoldsTheEvaluation) {
  FakeWorker w1("w1", 1);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 1});
  w1.Receive(now_);
  w1.End({id, 0, 1}, absl::OkStatus(), now_);
  Pass(absl::Seconds(1), {&w1});
  for (int i = 0; i < 3; ++i) Die(w1, absl::AbortedError("exit status 7"));
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_HELD);
  EXPECT_EQ(Status(id).groups_size(), 2);
  ASSERT_TRUE(coordinator_->Resume(id, now_).ok());
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_EVALUATING);
  w1.Receive(now_);
  EXPECT_EQ(w1.started().back(), (GroupKey{id, 1, 4}));
}

// The last try goes to another worker, because the one before may be at fault.
TEST_F(CoordinatorHoldTest, TriesAnotherWorkerBefore) {
  FakeWorker w1("w1", 2);
  FakeWorker w2("w2", 4);
  for (FakeWorker* worker : {&w1, &w2}) ASSERT_TRUE(worker->Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  for (int i = 0; i < 2; ++i) Die(w1, absl::AbortedError("exit status 7"), {&w1, &w2});
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{id, 0, 3}));
}

}  // namespace
}  // namespace hooke
