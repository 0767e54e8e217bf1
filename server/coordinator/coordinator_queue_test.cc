// Jobs that wait: their order, their places in the queue, and what they wait for.

#include <gmock/gmock.h>

#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

class CoordinatorQueueTest : public CoordinatorFixture {
 protected:
  std::string SubmitWith(uint32_t priority, ExampleGroups groups) {
    v1::SubmitRequest request = ExampleSubmission(absl::StrCat("p", ++submissions_), groups);
    request.mutable_job()->set_priority(priority);
    request.mutable_job()->set_preemptible(false);
    const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }
  // Lets the group train, with 10 steps in each half second.
  void Train(FakeWorker& worker, const GroupKey& key, int half_seconds) {
    for (int i = 0; i < half_seconds; ++i) {
      v1::RankEvent event;
      event.mutable_progress()->set_step(10 * ++steps_);
      event.mutable_progress()->set_steps_total(10000);
      event.mutable_progress()->set_phase(v1::RankProgress::COMPUTE);
      worker.Send(key, 0, event, now_);
      Pass(absl::Milliseconds(500), {&worker});
    }
  }

  uint64_t steps_ = 0;
};

// Jobs start in order of priority, and the oldest first within one priority. Their positions in the queue follow that
// order, also after a restart of the coordinator. A running job that is not preemptible is not stopped for another one.
TEST_F(CoordinatorQueueTest, HigherPrioritiesComeFirst) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string runs = SubmitWith(0, {1, 2});
  const std::string low = SubmitWith(0, {1, 2});
  const std::string high = SubmitWith(7, {1, 2});
  const std::string later = SubmitWith(7, {1, 2});
  w1.Receive(now_);
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{runs, 0, 1}));
  EXPECT_EQ(Status(runs).queue_position(), 0u);
  EXPECT_EQ(Status(high).queue_position(), 1u);
  EXPECT_EQ(Status(later).queue_position(), 2u);
  EXPECT_EQ(Status(low).queue_position(), 3u);
  EXPECT_EQ(Status(high).reason(), "1st in the queue; needs 2 slots; 0 free on w1 at hpc; 2 more when fashion-1 ends");
  EXPECT_EQ(Status(low).reason(),
            "3rd in the queue; needs 2 slots; 0 free on w1 at hpc; group 0 of fashion-3 comes first");
  w1.Disconnect(now_);
  Restart();
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  EXPECT_EQ(Status(low).queue_position(), 3u);
  for (const std::string& id : {runs, high, later}) {
    ASSERT_TRUE(coordinator_->Cancel(id, now_).ok());
    Pass(absl::Seconds(1), {&w1});
  }
  EXPECT_THAT(w1.started(),
              ElementsAre(GroupKey{runs, 0, 1}, GroupKey{high, 0, 1}, GroupKey{later, 0, 1}, GroupKey{low, 0, 1}));
}

// Once a running group has trained for a while, the job that waits for its slots is told about when.
TEST_F(CoordinatorQueueTest, TellsAboutWhenSlotsBecomeFree) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string runs = Submit({1, 2});
  const std::string waits = Submit({1, 2});
  w1.Receive(now_);
  const std::string unknown = "1st in the queue; needs 2 slots; 0 free on w1 at hpc; 2 more when fashion-1 ends";
  Train(w1, {runs, 0, 1}, 4);
  EXPECT_EQ(Status(waits).reason(), unknown);
  Train(w1, {runs, 0, 1}, 16);  // 200 of 10000 steps, 20 a second: 490 s are left.
  EXPECT_EQ(now_.wall, absl::FromUnixSeconds(1000010));
  EXPECT_EQ(Status(waits).reason(), absl::StrCat(unknown, ", about 1970-01-12T13:55:00Z"));
}

// A job that has started goes on as a running one while its groups wait, and says what the first of them waits for.
TEST_F(CoordinatorQueueTest, AStartedJobSaysWhyNoGroupRuns) {
  FakeWorker w1("w1", 2);
  FakeWorker w2("w2", 1);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  Pass(absl::Seconds(1), {&w1, &w2});
  ASSERT_THAT(w1.started(), ElementsAre(GroupKey{id, 0, 1}));
  EXPECT_EQ(Status(id).reason(), "running");
  w1.Disconnect(now_);
  Pass(absl::Minutes(5), {&w2});
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(Status(id).reason(),
              StartsWith("no group runs: needs 2 slots; the largest worker that could run it, w2,"));
  EXPECT_EQ(coordinator_->RowsSince(0, 1).rows.at(0).reason, Status(id).reason());
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(10), {&w1, &w2});
  EXPECT_EQ(Status(id).reason(), "running");
}

// A small job starts on the free slots of a worker, although a large job is ahead of it in the queue. That holds if the
// large job is expected to start on another worker before it could start on this one.
TEST_F(CoordinatorQueueTest, ASmallJobFillsAGap) {
  FakeWorker w1("w1", 4);
  FakeWorker w2("w2", 4);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string first = Submit({1, 4});
  Pass(absl::Milliseconds(500), {&w1});
  ASSERT_TRUE(w2.Connect(*coordinator_, now_).ok());
  const std::string second = Submit({1, 3});
  Pass(absl::Milliseconds(500), {&w1, &w2});
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{second, 0, 1}));
  const std::string large = Submit({1, 4});
  const std::string small = Submit({1, 1});
  Pass(absl::Seconds(1), {&w1, &w2});
  EXPECT_EQ(Status(small).state(), v1::JOB_STATE_QUEUED) << "nobody knows which worker will be free first";
  EXPECT_EQ(Status(small).reason(),
            "2nd in the queue; needs 1 slot; the 1 free on w2 at hpc is kept for group 0 of fashion-3");
  uint64_t step = 0;
  for (int i = 0; i < 20; ++i) {
    // In each half second w1 does one of 25 steps of its task, and w2 one of 10000.
    v1::RankEvent event;
    event.mutable_progress()->set_phase(v1::RankProgress::COMPUTE);
    event.mutable_progress()->set_step(++step);
    event.mutable_progress()->set_steps_total(25);
    w1.Send({first, 0, 1}, 0, event, now_);
    event.mutable_progress()->set_steps_total(10000);
    w2.Send({second, 0, 1}, 0, event, now_);
    Pass(absl::Milliseconds(500), {&w1, &w2});
  }
  EXPECT_THAT(w2.started(), ElementsAre(GroupKey{second, 0, 1}, GroupKey{small, 0, 1}));
  w1.End({first, 0, 1}, absl::OkStatus(), now_);
  Pass(absl::Seconds(1), {&w1, &w2});
  EXPECT_EQ(Status(first).state(), v1::JOB_STATE_EVALUATING);
  EXPECT_EQ(Status(large).queue_position(), 1u);
}

}  // namespace
}  // namespace hooke
