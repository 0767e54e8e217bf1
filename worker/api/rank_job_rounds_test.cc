// Tests the programs of several groups that meet in rounds at a server.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
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
  for (const hooke_plan plan : {hooke_plan{0, 0}, hooke_plan{0, 1}, hooke_plan{kSteps, 0}, hooke_plan{kSteps, 1}}) {
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

}  // namespace
}  // namespace hooke
