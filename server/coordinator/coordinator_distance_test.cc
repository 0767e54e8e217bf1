// The coordinator shows the groups' distances from the center as they report them, and works out how stale they are.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

class CoordinatorDistanceTest : public CoordinatorFixture {
 protected:
  // Starts a job of two groups under this rule.
  void Start(v1::AveragingSpec::Rule rule) {
    v1::SubmitRequest request = ExampleSubmission("s", {2, 1});
    v1::AveragingSpec& averaging = *request.mutable_job()->mutable_averaging();
    averaging.set_rule(rule);
    if (rule != v1::AveragingSpec::ELASTIC) averaging.clear_alpha();
    const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
    ASSERT_TRUE(id.ok()) << id.status();
    id_ = *id;
    ASSERT_TRUE(worker_.Connect(*coordinator_, now_).ok());
    Pass(absl::Seconds(1), {&worker_});
    ASSERT_EQ(worker_.running().size(), 2u);
  }

  void Report(uint32_t group, uint64_t exchanges, std::optional<double> distance = std::nullopt) {
    v1::RankEvent event;
    v1::RankProgress& progress = *event.mutable_progress();
    progress.set_step(++step_);
    progress.set_phase(v1::RankProgress::COMPUTE);
    progress.set_exchanges(exchanges + 3);
    progress.set_exchange_failures(3);
    progress.set_compute_seconds(0.25 * static_cast<double>(step_));
    progress.set_exchange_seconds(0.001);
    if (distance.has_value()) progress.set_center_distance(*distance);
    progress.set_staleness(1000);  // No rank knows it, so the coordinator does not believe it.
    worker_.Send({id_, group, 1}, 0, event, now_);
  }

  // For 20 s group 0 makes ten exchanges a second, and group 1 two.
  void Train() {
    for (uint64_t second = 0; second <= 20; ++second) {
      Report(0, 10 * second, 0.01);
      Report(1, 2 * second);
      Pass(absl::Seconds(1), {&worker_});
    }
  }

  FakeWorker worker_{"w1", 4};
  std::string id_;
  uint64_t step_ = 0;
};

// The job's status and its history have each group's distance from the center and its staleness. A group that reports
// no distance has none.
TEST_F(CoordinatorDistanceTest, AreInTheStatusAndInTheHistory) {
  Start(v1::AveragingSpec::ELASTIC);
  Train();
  const v1::JobStatus status = Status(id_);
  EXPECT_EQ(status.groups(0).progress().center_distance(), 0.01);
  EXPECT_FALSE(status.groups(1).progress().has_center_distance());
  EXPECT_NEAR(status.groups(0).progress().staleness(), 0.2, 0.05);
  EXPECT_NEAR(status.groups(1).progress().staleness(), 5, 0.5);
  const std::vector<v1::HistoryPoint> points = *coordinator_->ReadHistory(id_);
  ASSERT_EQ(points.size(), 42u);
  EXPECT_FALSE(points.front().has_staleness()) << "not known yet";
  EXPECT_EQ(points[20].center_distance(), 0.01);
  EXPECT_NEAR(points[20].staleness(), 0.2, 0.05);
  EXPECT_FALSE(points.back().has_center_distance());
  EXPECT_NEAR(points.back().staleness(), 5, 0.5);
  EXPECT_EQ(points[0].computing_ms(), 250u) << "where the time of rank 0 went since the group's start";
  EXPECT_EQ(points[20].computing_ms(), 41u * 250);
  EXPECT_EQ(points[20].collectives_ms(), 0u);
  EXPECT_EQ(points[20].exchanging_ms(), 1u);
}

// Under rules with rounds all groups change the center together, so the status has no staleness.
TEST_F(CoordinatorDistanceTest, NoStalenessInRounds) {
  Start(v1::AveragingSpec::AVERAGE);
  Train();
  EXPECT_FALSE(Status(id_).groups(0).progress().has_staleness());
}

TEST_F(CoordinatorDistanceTest, NoStalenessWithoutAveraging) {
  Start(v1::AveragingSpec::NONE);
  Train();
  EXPECT_FALSE(Status(id_).groups(0).progress().has_staleness());
}

TEST_F(CoordinatorDistanceTest, ImpossibleNumbersAreLeftOut) {
  Start(v1::AveragingSpec::ELASTIC);
  for (const double distance : {std::nan(""), std::numeric_limits<double>::infinity(), -0.5}) {
    Report(0, 1, distance);
    EXPECT_FALSE(Status(id_).groups(0).progress().has_center_distance()) << distance;
  }
}

}  // namespace
}  // namespace hooke
