#include "worker/training/job_training.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// Returns the start of a job's only group, as a worker makes it.
v1::GroupStart Start(uint32_t ranks) {
  v1::GroupStart start;
  start.set_job_id("job-1");
  start.set_incarnation(1);
  start.set_task(v1::GroupStart::TRAIN);
  start.add_servers("first:1");
  v1::JobSpec& job = *start.mutable_job();
  job.set_name("job");
  job.mutable_model()->set_name("mlp");
  job.mutable_data()->set_format(v1::DataSpec::FORMAT_IDX);
  job.mutable_data()->set_train("/data/train");
  job.mutable_data()->set_test("/data/test");
  job.mutable_train()->mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
  job.mutable_train()->mutable_optimizer()->set_learning_rate(0.05);
  job.mutable_groups()->set_count(1);
  job.mutable_groups()->set_ranks(ranks);
  job.mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
  job.mutable_averaging()->set_interval(2);
  job.mutable_averaging()->set_alpha(0.4);
  return start;
}

// A wrong start file is refused. The message has the field and what is allowed.
TEST(JobTraining, CheckStart) {
  struct Case {
    std::function<void(v1::GroupStart&)> change;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](v1::GroupStart& s) { s.set_task(v1::GroupStart::TASK_UNSPECIFIED); }, "task is 0; allowed: TRAIN, EVALUATE"},
      {[](v1::GroupStart& s) { s.set_group(1); }, "group is 1; allowed: 0 to 0"},
      {[](v1::GroupStart& s) { s.mutable_job()->mutable_groups()->set_ranks(3); },
       "job.groups.ranks is 3; allowed: the 2 ranks that were started"},
      {[](v1::GroupStart& s) { s.mutable_job()->mutable_groups()->set_count(1025); },
       "start file: job.groups.count: 1025 is out of range; must be an integer from 1 to 1024"},
      {[](v1::GroupStart& s) { s.set_incarnation(0); }, "incarnation is 0; allowed: at least 1"},
      {[](v1::GroupStart& s) { s.mutable_job()->mutable_train()->set_epochs(100001); }, "job.train.epochs: 100001 is"},
      {[](v1::GroupStart& s) {
         s.mutable_job()->mutable_averaging()->set_rule(v1::AveragingSpec::SYNC);
         s.mutable_job()->mutable_averaging()->set_grace_seconds(11);
       },
       "job.averaging.grace_seconds: 11 is out of range; must be a number from 0 to 10"},
      {[](v1::GroupStart& s) { s.mutable_job()->mutable_averaging()->set_delay(2); },
       "job.averaging.delay: 2 is not below averaging.interval, which is 2"},
      {[](v1::GroupStart& s) {
         s.mutable_job()->mutable_averaging()->set_rule(v1::AveragingSpec::SYNC);
         s.mutable_job()->mutable_collectives()->set_aggregation(v1::CollectivesSpec::ROOTED);
       },
       "job.collectives.aggregation: rooted does not apply to averaging.rule sync"},
      {[](v1::GroupStart& s) {
         s.mutable_job()->mutable_averaging()->set_rule(static_cast<v1::AveragingSpec::Rule>(11));
       },
       "job.averaging.rule: \"number 11\" is not known"},
      {[](v1::GroupStart& s) { s.mutable_job()->mutable_data()->clear_train(); }, "job.data.train: \"\" is not"},
      {[](v1::GroupStart& s) {
         s.set_task(v1::GroupStart::EVALUATE);
         s.clear_servers();
       },
       "servers is empty"},
  };
  EXPECT_TRUE(CheckStart(Start(2), 2).ok());
  v1::GroupStart by_hand = Start(2);
  by_hand.mutable_job()->clear_averaging();
  by_hand.mutable_job()->mutable_train()->clear_optimizer();
  EXPECT_TRUE(CheckStart(by_hand, 2).ok()) << "what is not set has its default";
  for (const Case& c : cases) {
    v1::GroupStart start = Start(2);
    c.change(start);
    absl::Status status = CheckStart(start, 2);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace hooke
