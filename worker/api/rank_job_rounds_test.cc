// Tests the programs of several groups that meet in rounds at a server.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/rank_threads.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "worker/api/rank_job.h"
#include "worker/api/rank_job_ranks.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/exchange/restartable_server_test.h"

namespace hooke {
namespace {

constexpr uint32_t kGroups = 2;
constexpr uint64_t kSteps = 14;

v1::GroupStart Start(uint32_t group, const std::string& server) {
  v1::GroupStart start;
  start.set_task(v1::GroupStart::TRAIN);
  start.set_incarnation(1);
  start.set_job_id("job-1");
  start.set_job_key("key");
  start.set_group(group);
  start.add_servers(server);
  v1::JobSpec& job = *start.mutable_job();
  job.mutable_groups()->set_count(kGroups);
  job.mutable_groups()->set_ranks(1);
  job.mutable_averaging()->set_rule(v1::AveragingSpec::AVERAGE);
  job.mutable_averaging()->set_interval(1);
  job.mutable_averaging()->set_servers(1);
  job.mutable_averaging()->set_grace_seconds(10);
  return start;
}

// Trains a group of one rank with one parameter, which the rank raises by the group's number + 1 in each step. Returns
// the parameter's values after the steps.
std::vector<float> Train(uint32_t group, const std::string& server, const hooke_plan& plan) {
  std::vector<float> values;
  const auto dial = [](const std::string& address) { return DialServer(address); };
  RunRankJobs(Start(group, server), 1, dial, [&](RankJob& job, Reporter&, int) {
    float first = 0;
    hooke_tensor tensor = {};
    tensor.name = "parameter";
    tensor.device = HOOKE_HOST;
    tensor.values = &first;
    EXPECT_TRUE(job.Register(absl::MakeSpan(&tensor, 1)).ok());
    EXPECT_TRUE(job.Begin(plan).ok());
    while (values.size() < kSteps) {
      EXPECT_TRUE(job.Combine(1, nullptr).ok());
      float& value = *static_cast<float*>(tensor.values);
      value += static_cast<float>(group + 1);
      if (!job.EndStep({}).ok()) break;
      values.push_back(value);
    }
    EXPECT_TRUE(job.Finish().ok());
  });
  return values;
}

// Each round has both groups, also after more steps than train.epochs (10), whatever the plan says about the length of
// the training.
TEST(RankJobRoundsTest, RoundsHaveAllGroupsAfterTenSteps) {
  for (const hooke_plan plan :
       {hooke_plan{0, 0, 0}, hooke_plan{0, 1, 0}, hooke_plan{kSteps, 0, 0}, hooke_plan{kSteps, 1, 0}}) {
    RestartableServer server;
    std::vector<float> values[kGroups];
    RunRanks(kGroups, [&](int group) { values[group] = Train(static_cast<uint32_t>(group), server.address(), plan); });
    for (const std::vector<float>& each : values) {
      ASSERT_EQ(each.size(), kSteps);
      for (size_t step = 0; step < kSteps; ++step) {
        EXPECT_FLOAT_EQ(each[step], 1.5f * static_cast<float>(step + 1)) << "plan " << plan.steps_total;
      }
    }
  }
}

// More than any test can make.
constexpr uint64_t kManySteps = uint64_t{1} << 50;

// A group ends after `end` steps, and then stops the whole job if `stops`.
struct Ending {
  uint64_t end = 0;
  bool stops = false;
};
// Trains a group of one rank until its `ending`, or until the job stops. Returns its steps.
uint64_t TrainUntil(const v1::GroupStart& start, const Ending& ending) {
  uint64_t steps = 0;
  const auto dial = [](const std::string& address) { return DialServer(address); };
  RunRankJobs(start, 1, dial, [&](RankJob& job, Reporter&, int) {
    float first = 0;
    hooke_tensor tensor = {};
    tensor.name = "parameter";
    tensor.device = HOOKE_HOST;
    tensor.values = &first;
    EXPECT_TRUE(job.Register(absl::MakeSpan(&tensor, 1)).ok());
    EXPECT_TRUE(job.Begin({kManySteps, 0, 0}).ok());
    while (job.step() < ending.end && !*job.Stopping()) {
      ASSERT_TRUE(job.Combine(1, nullptr).ok());
      const absl::StatusOr<uint64_t> step = job.EndStep({});
      ASSERT_TRUE(step.ok()) << step.status();
    }
    if (ending.stops) {
      EXPECT_TRUE(job.Stop().ok());
    }
    const absl::Status finished = job.Finish();
    EXPECT_TRUE(finished.ok()) << finished;
    steps = job.step();
  });
  return steps;
}

// A group that ends early is not awaited, even if each round needs all groups. The grace is longer than this test.
TEST(RankJobRoundsTest, RoundsGoOnWithoutAGroupThatEndsEarly) {
  RestartableServer server;
  uint64_t steps[kGroups];
  RunRanks(kGroups, [&](int group) {
    v1::GroupStart start = Start(static_cast<uint32_t>(group), server.address());
    start.mutable_job()->mutable_averaging()->set_quorum(kGroups);
    steps[group] = TrainUntil(start, {group == 1 ? uint64_t{5} : 40, false});
  });
  EXPECT_EQ(steps[0], 40u);
  EXPECT_EQ(steps[1], 5u);
}

// One group stops the job. The other one learns it, under rules with and without rounds, and even if it exchanges
// nothing.
TEST(RankJobRoundsTest, OneGroupStopsTheOther) {
  for (const auto rule : {v1::AveragingSpec::AVERAGE, v1::AveragingSpec::ELASTIC, v1::AveragingSpec::NONE}) {
    const int stops = rule == v1::AveragingSpec::NONE ? 1 : 0;
    RestartableServer server;
    uint64_t steps[kGroups];
    RunRanks(kGroups, [&](int group) {
      v1::GroupStart start = Start(static_cast<uint32_t>(group), server.address());
      start.mutable_job()->mutable_averaging()->set_rule(rule);
      if (rule != v1::AveragingSpec::AVERAGE) start.mutable_job()->mutable_averaging()->clear_grace_seconds();
      steps[group] = TrainUntil(start, {group == stops ? 5 : kManySteps - 1, group == stops});
    });
    EXPECT_EQ(steps[stops], 5u);
    EXPECT_LT(steps[1 - stops], kManySteps - 1) << v1::AveragingSpec::Rule_Name(rule);
  }
}

// Groups whose plans differ would wait for each other. The second one fails before its first step, with both lengths.
TEST(RankJobRoundsTest, PlansThatDifferAreAnErrorBeforeTheFirstStep) {
  RestartableServer server;
  const auto dial = [](const std::string& address) { return DialServer(address); };
  const auto begin = [&](uint32_t group, const hooke_plan& plan) {
    absl::Status status;
    RunRankJobs(Start(group, server.address()), 1, dial, [&](RankJob& job, Reporter&, int) {
      float first = 0;
      hooke_tensor tensor = {};
      tensor.name = "parameter";
      tensor.device = HOOKE_HOST;
      tensor.values = &first;
      EXPECT_TRUE(job.Register(absl::MakeSpan(&tensor, 1)).ok());
      status = job.Begin(plan).status();
    });
    return status;
  };
  EXPECT_TRUE(begin(0, {20, 10, 0}).ok());
  for (const hooke_plan plan : {hooke_plan{30, 10, 0}, hooke_plan{25, 0, 0}, hooke_plan{0, 0, 0}}) {
    const absl::Status status = begin(1, plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("the first group of the job 2 epochs of 10 steps"));
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("the same plan in all groups"));
  }
}

}  // namespace
}  // namespace hooke
