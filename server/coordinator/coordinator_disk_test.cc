// Shows in virtual time what the coordinator still does while its store fails, and what it catches up on afterwards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using CoordinatorDiskTest = CoordinatorFixture;

// Three hours of a broken disk: heartbeats are answered each second, workers are welcomed, progress of jobs that did
// not change is acknowledged, a cancelled group stops. No session is lost, meanwhile or afterwards.
TEST_F(CoordinatorDiskTest, AFailingStoreStopsNothingThatNeedsNoStore) {
  FakeWorker w1("w1", 4), late("late", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string runs = Submit({1, 2});
  const std::string cancelled = Submit({1, 2});
  w1.Receive(now_);
  w1.Progress({runs, 0, 1}, 1, now_);
  w1.Progress({cancelled, 0, 1}, 1, now_);
  w1.Receive(now_);
  ASSERT_EQ(w1.unseen(), 0u);

  store_->FailWith(absl::InternalError("broken disk"));
  EXPECT_EQ(coordinator_->Cancel(cancelled, now_).status().code(), absl::StatusCode::kInternal);
  w1.Receive(now_);
  EXPECT_EQ(w1.running().size(), 1u) << "the cancelled group was told to stop";
  EXPECT_EQ(w1.unseen(), 1u) << "its end is acknowledged only once it is stored";
  ASSERT_TRUE(late.Connect(*coordinator_, now_).ok());
  late.Receive(now_);
  EXPECT_TRUE(late.welcomed());

  const int echoes = w1.echoes();
  for (int second = 1; second <= 3 * 3600; ++second) {
    Pass(absl::Seconds(1), {&w1, &late});
    w1.Progress({runs, 0, 1}, 1 + second, now_);
    w1.Receive(now_);
    ASSERT_EQ(w1.unseen(), 1u);
    ASSERT_EQ(w1.echoes(), echoes + 2 * second);
    ASSERT_TRUE(w1.connected() && late.connected());
  }
  store_->FailWith(absl::OkStatus());
  Pass(absl::Seconds(2), {&w1, &late});
  EXPECT_TRUE(w1.connected() && late.connected());
  EXPECT_EQ(w1.unseen(), 0u);
  EXPECT_EQ(coordinator_->Cancel(cancelled, now_)->state(), v1::JOB_STATE_CANCELLED);
  Restart();
  EXPECT_EQ(Status(cancelled).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Status(runs).state(), v1::JOB_STATE_RUNNING);
}

// Points that were reported five seconds before a SIGKILL are there afterwards, and the history goes on from them. The
// history stays when the job ends, and is gone when the job is forgotten.
TEST_F(CoordinatorDiskTest, AHistoryOutlivesTheCoordinator) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  EXPECT_EQ(coordinator_->ReadHistory(id).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(coordinator_->ReadHistory("no-9").status().code(), absl::StatusCode::kNotFound);
  for (uint64_t step = 1; step <= 10; ++step) {
    w1.Progress({id, 0, 1}, step, now_);
    Pass(absl::Seconds(1), {&w1});
  }
  const uint64_t puts = store_->puts();
  Pass(absl::Seconds(5), {&w1});
  EXPECT_LE(store_->puts(), puts + 2) << "nothing new: nothing is written";
  // From here on the store takes nothing, as if the coordinator were dead.
  store_->FailWith(absl::InternalError("dead"));
  coordinator_ = nullptr;
  store_->FailWith(absl::OkStatus());
  Restart();
  std::vector<v1::HistoryPoint> points = *coordinator_->ReadHistory(id);
  ASSERT_EQ(points.size(), 10u);
  EXPECT_EQ(points[0].step(), 1u);
  EXPECT_EQ(points[9].step(), 10u);
  EXPECT_EQ(points[9].group(), 0u);

  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  w1.Receive(now_);
  w1.Progress({id, 0, 1}, 11, now_);
  ASSERT_TRUE(coordinator_->Cancel(id, now_).ok());
  Pass(absl::Seconds(5), {&w1});
  EXPECT_EQ(coordinator_->ReadHistory(id)->size(), 11u) << "from the store";
  EXPECT_EQ(coordinator_->ReadHistory(id)->size(), 11u) << "again";
  ASSERT_TRUE(coordinator_->Forget(id, now_).ok());
  int left = 0;
  ASSERT_TRUE(store_
                  ->Scan("history/",
                         [&left](absl::string_view, absl::string_view) {
                           ++left;
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_EQ(left, 0);
}

// While the store fails, starts wait. Once it has stored them, each is sent once.
TEST_F(CoordinatorDiskTest, StartsWaitUntilTheStoreRecovers) {
  FakeWorker w1("w1", 2);
  const std::string id = Submit({1, 2});
  store_->FailWith(absl::InternalError("broken disk"));
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  for (int tries = 0; tries < 5; ++tries) {
    Pass(absl::Seconds(1), {&w1});
    EXPECT_TRUE(w1.welcomed());
    EXPECT_TRUE(w1.started().empty());
  }
  store_->FailWith(absl::OkStatus());
  Pass(absl::Seconds(2), {&w1});
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}));
  Pass(absl::Seconds(2), {&w1});
  EXPECT_EQ(w1.started().size(), 1u);
}

// A change of one group of many writes the records that it changed, not those of the whole job.
TEST_F(CoordinatorDiskTest, OneGroupsChangeWritesNoOtherGroup) {
  FakeWorker w1("w1", 100);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({100, 1});
  w1.Receive(now_);
  ASSERT_EQ(w1.running().size(), 100u);
  const uint64_t puts = store_->puts();
  w1.End({id, 7, 1}, absl::OkStatus(), now_);
  EXPECT_EQ(Stored()[0].groups[7].state, v1::GROUP_STATE_FINISHED);
  EXPECT_EQ(store_->puts() - puts, 1u);
}

// Log lines do not depend on the job store: they are written and read while it fails.
TEST_F(CoordinatorDiskTest, LogsGoOnWhileTheStoreFails) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  store_->FailWith(absl::InternalError("broken disk"));
  w1.Progress({id, 0, 1}, 1, now_);
  w1.Log({id, 0, 1}, "group 0 rank 0 loss 0.5", now_);
  EXPECT_THAT(Log(id), HasSubstr("group 0 rank 0 loss 0.5\n"));
}

}  // namespace
}  // namespace hooke
