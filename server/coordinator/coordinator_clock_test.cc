// Somebody sets the wall clock of the coordinator's machine by an hour, forwards or backwards. No wait gets longer or
// shorter. Only the times that users see change.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "clocks/instant.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

class CoordinatorClockTest : public CoordinatorFixture, public testing::WithParamInterface<absl::Duration> {
 protected:
  void SetClock() { now_.wall += GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(AnHour, CoordinatorClockTest, testing::Values(absl::Hours(1), -absl::Hours(1)),
                         [](const auto& set) { return set.param > absl::ZeroDuration() ? "Forwards" : "Backwards"; });

// A failed group starts again half a second later, neither at once nor an hour later.
TEST_P(CoordinatorClockTest, BackOffsGoOn) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  w1.End({id, 0, 1}, absl::AbortedError("a rank died"), now_);
  SetClock();
  coordinator_->Tick(now_);
  w1.Receive(now_);
  EXPECT_EQ(w1.started().size(), 1u);
  Pass(absl::Milliseconds(500), {&w1});
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}, GroupKey{id, 0, 2}));
}

// After a failure of the store, the coordinator tries it again a second later.
TEST_P(CoordinatorClockTest, TheStoreIsTriedAgain) {
  FakeWorker w1("w1", 2);
  Submit({1, 2});
  store_->FailWith(absl::InternalError("broken disk"));
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  store_->FailWith(absl::OkStatus());
  SetClock();
  coordinator_->Tick(now_);
  w1.Receive(now_);
  EXPECT_TRUE(w1.started().empty());
  Pass(absl::Seconds(1), {&w1});
  EXPECT_EQ(w1.started().size(), 1u);
}

// A worker that answers is not lost, and one that falls silent is lost after its lease. A server's silence is reported
// after 4 s.
TEST_P(CoordinatorClockTest, LeasesGoOn) {
  FakeWorker w1("w1", 2), w2("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(5), {&w1, &w2});
  SetClock();
  coordinator_->Tick(now_);
  for (const v1::NodeStatus& node : coordinator_->Nodes(now_)) EXPECT_TRUE(node.alive()) << node.name();
  Pass(absl::Seconds(9), {&w2}, /*server_lives=*/false);
  EXPECT_EQ(Status(id).groups(0).silences_size(), 2);
  EXPECT_TRUE(w2.started().empty());
  Pass(absl::Seconds(1), {&w2});
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{id, 0, 2}));
}

// The coordinator waits at most half a minute for the last lines of a failed job, and knows an ended job for a minute.
TEST_P(CoordinatorClockTest, EndsAreToldInTime) {
  settings_.cluster.keep.jobs_max = 1;
  Restart();
  FakeWorker w1("w1", 2), stuck("w2", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(stuck.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({2, 2});
  w1.Receive(now_);
  stuck.Receive(now_, /*linger=*/true);
  w1.End({id, 0, 1}, absl::NotFoundError("no file /x"), now_);
  SetClock();
  for (int second = 1; second < 30; ++second) {
    Pass(absl::Seconds(1), {&w1});
    stuck.Heartbeat(now_);
    EXPECT_FALSE(coordinator_->LogIsComplete(id));
  }
  Pass(absl::Seconds(1), {&w1});
  EXPECT_TRUE(coordinator_->LogIsComplete(id));
  EXPECT_THAT(Log(id), EndsWith("no file /x\n"));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(coordinator_->Cancel(Submit(), now_).ok());
  Pass(absl::Seconds(29), {&w1});
  EXPECT_TRUE(coordinator_->Status(id, now_).ok());
  Pass(absl::Seconds(2), {&w1});
  EXPECT_EQ(coordinator_->Status(id, now_).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace hooke
