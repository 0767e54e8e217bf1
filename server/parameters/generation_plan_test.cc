// The plans of a job's later generations: what may change between two of them, and what a group's request may say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Change = std::function<void(v1::AttachRequest&)>;

v1::AttachRequest Request(uint32_t first_incarnation, const Change& change = nullptr) {
  v1::AttachRequest request = MakeStepRequest({}, v1::AveragingSpec::AVERAGE, 1);
  request.mutable_job()->set_first_incarnation(first_incarnation);
  if (change) change(request);
  return request;
}

// All that belongs to groups may change. The center keeps its blocks, also if this server makes others today.
TEST(NextGeneration, TakesAllThatBelongsToGroups) {
  const ShardPlan center = PlanShard(Request(0), 4).value();
  const ShardPlan group = PlanShard(Request(7,
                                            [](v1::AttachRequest& request) {
                                              v1::JobSpecForShard& job = *request.mutable_job();
                                              job.set_groups(3);
                                              job.set_ranks(2);
                                              job.set_slices(1);
                                              for (const uint32_t samples : {8, 16, 8}) job.add_group_samples(samples);
                                              job.set_alpha(0.3);
                                              job.set_quorum(2);
                                              job.set_epochs(4);
                                              job.set_steps_per_epoch(30);
                                              job.set_first_step(50);
                                              job.set_first_epoch(0.5);
                                              job.set_steps_total(200);
                                            }),
                                    8)
                              .value();
  const ShardPlan next = NextGeneration(center, group).value();
  EXPECT_EQ(next.job.SerializeAsString(), group.job.SerializeAsString());
  EXPECT_EQ(next.job_id, center.job_id);
  EXPECT_EQ(next.layout.SerializeAsString(), center.layout.SerializeAsString());
  EXPECT_EQ(next.partition.block_values(), 4u);
  EXPECT_EQ(next.blocks, center.blocks);
  EXPECT_EQ(next.rule.round.quorum, 2u);
  EXPECT_GT(next.memory_bytes, center.memory_bytes) << "three groups need more than two";
}

// Everything else is the same in all generations. The message names what differs.
TEST(NextGeneration, RefusesOtherChanges) {
  struct Case {
    Change change;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](auto& request) { request.mutable_job()->set_job_key("another"); }, "another job had the id job-1 here"},
      {[](auto& request) { request.mutable_job()->set_rule(v1::AveragingSpec::SYNC); },
       "job.rule differs: the center was made with average, the group has sync"},
      {[](auto& request) { request.mutable_job()->set_shard_count(2); }, "job.shard_count differs"},
      {[](auto& request) {
         request.mutable_job()->set_shard_count(2);
         request.mutable_job()->set_shard_index(1);
       },
       "job.shard_index differs"},
      {[](auto& request) { request.mutable_layout()->mutable_parameters(0)->set_name("v"); },
       "the center has w float32 [10], the group has v float32 [10]"},
      {[](auto& request) { request.mutable_job()->set_parameters(9); }, "parameters: 10 -> 9"},
      {[](auto& request) { request.mutable_job()->set_interval(2); }, "interval: 1 -> 2"},
      {[](auto& request) { request.mutable_job()->set_fragments(2); }, "fragments: 0 -> 2"},
      {[](auto& request) { request.mutable_job()->set_grace_seconds(3); }, "grace_seconds: 0 -> 3"},
      {[](auto& request) { request.mutable_job()->set_compression(v1::AveragingSpec::COMPRESSION_FLOAT16); },
       "job.compression differs"},
  };
  const ShardPlan center = PlanShard(Request(0)).value();
  for (const Case& each : cases) {
    const absl::StatusOr<ShardPlan> group = PlanShard(Request(7, each.change));
    ASSERT_TRUE(group.ok()) << group.status();
    const absl::Status status = NextGeneration(center, *group).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << each.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(each.message));
  }
}

// A later generation may have another momentum under bmuf, whose default is 1 - 1/p for p groups. Under other rules the
// momentum stays.
TEST(NextGeneration, TakesTheMomentumOfBmuf) {
  for (const auto rule : {v1::AveragingSpec::BMUF, v1::AveragingSpec::SLOWMO}) {
    const ShardPlan center =
        PlanShard(Request(0, [rule](auto& request) { request.mutable_job()->set_rule(rule); }), 4).value();
    const absl::StatusOr<ShardPlan> next =
        NextGeneration(center, PlanShard(Request(7,
                                                 [rule](auto& request) {
                                                   request.mutable_job()->set_rule(rule);
                                                   request.mutable_job()->mutable_optimizer()->set_momentum(0.5);
                                                   request.mutable_job()->mutable_optimizer()->set_nesterov(true);
                                                 }),
                                         4)
                                   .value());
    if (rule == v1::AveragingSpec::SLOWMO) {
      EXPECT_EQ(next.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(next.status().message()), HasSubstr("momentum"));
      continue;
    }
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(center.rule.traits.state_values, 0u);
    EXPECT_EQ(next->rule.traits.state_values, 1u);
    EXPECT_EQ(next->job.optimizer().momentum(), 0.5);
  }
}

// Groups of one generation have the same numbers. The message names what differs.
TEST(ComparePlans, NamesDifferencesWithinAGeneration) {
  struct Case {
    Change change;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](auto& request) { request.mutable_job()->set_groups(4); }, "job.groups differs"},
      {[](auto& request) { request.mutable_job()->set_first_incarnation(8); }, "first_incarnation: 7 -> 8"},
      {[](auto& request) { request.mutable_job()->set_first_step(5); }, "first_step: 0 -> 5"},
      {[](auto& request) { request.mutable_job()->set_first_epoch(0.5); }, "first_epoch: 0 -> 0.5"},
      {[](auto& request) { request.mutable_job()->set_steps_total(90); },
       "this group is to train up to step 90, but the first group of the job 100 steps"},
  };
  const ShardPlan center = PlanShard(Request(7), 4).value();
  for (const Case& each : cases) {
    const absl::Status status = ComparePlans(center, PlanShard(Request(7, each.change), 4).value());
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << each.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(each.message));
  }
  EXPECT_EQ(ComparePlans(center, PlanShard(Request(7), 4).value()), absl::OkStatus());
}

// Numbers that no coordinator sends are refused. The message names the field and what is allowed.
TEST(PlanShard, ChecksTheGeneration) {
  struct Case {
    Change change;
    std::string message;
  };
  constexpr uint64_t kHighest = std::numeric_limits<uint64_t>::max();
  const std::vector<Case> cases = {
      {[](auto& request) { request.mutable_job()->set_first_step(kHighest); },
       "job.first_step is 18446744073709551615; 0 to 9007199254740992 are allowed"},
      {[](auto& request) { request.mutable_job()->set_first_epoch(-1); },
       "job.first_epoch is -1; a finite number of at least 0 is allowed"},
      {[](auto& request) { request.mutable_job()->set_first_epoch(NAN); }, "job.first_epoch is nan"},
      {[](auto& request) { request.mutable_job()->set_first_epoch(INFINITY); }, "job.first_epoch is inf"},
      {[](auto& request) {
         request.mutable_job()->set_first_step(8);
         request.mutable_job()->set_steps_total(7);
       },
       "job.steps_total is 7; 0, or at least job.first_step, which is 8, is allowed"},
      {[](auto& request) {
         request.mutable_job()->set_first_incarnation(0);
         request.mutable_job()->set_first_step(8);
       },
       "the first generation of a job begins at step 0"},
  };
  for (const Case& each : cases) {
    const absl::Status status = PlanShard(Request(7, each.change), 4).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << each.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(each.message));
  }
  const Change nothing_left = [](auto& request) {
    request.mutable_job()->set_first_step(8);
    request.mutable_job()->set_steps_total(8);
  };
  EXPECT_TRUE(PlanShard(Request(7, nothing_left), 4).ok());
}

// A start of an earlier generation is told so, also if its group does not exist any more. Other numbers that are out of
// range are the sender's mistake.
TEST(CheckSpeakerOf, KnowsTheGeneration) {
  const ShardPlan plan = PlanShard(Request(7), 4).value();
  for (const uint32_t group : {0, 1, 99}) {
    const absl::Status status = CheckSpeakerOf(plan, {group, 0, 6});
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("the number of groups of job job-1 has changed"),
                                                     HasSubstr("a generation that is over"), HasSubstr("start 7")));
  }
  EXPECT_EQ(CheckSpeakerOf(plan, {1, 0, 7}), absl::OkStatus());
  EXPECT_EQ(CheckSpeakerOf(plan, {2, 0, 7}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckSpeakerOf(plan, {0, 1, 7}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckSpeakerOf(plan, {0, 0, 0}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hooke
