#include "server/parameters/shard_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// A shard's blocks are those that algorithms/sharding gives it, also when there are more servers than blocks.
TEST(PlanShard, CutsTheCenter) {
  TestCenter center;
  center.shard_count = 4;
  const Range expected[] = {{0, 1}, {1, 2}, {2, 3}, {3, 3}};
  for (center.shard_index = 0; center.shard_index < 4; ++center.shard_index) {
    const ShardPlan plan = PlanShard(MakeAttachRequest(center), 4).value();
    EXPECT_EQ(plan.blocks, expected[center.shard_index]);
    EXPECT_EQ(plan.partition.values(), 10u);
  }
}

// Memory: values, 16 bytes for each block and group, and the answers kept for each rank.
TEST(PlanShard, CountsMemory) {
  TestCenter center;
  center.values = 1 << 20;
  center.ranks = 4;
  const ShardPlan plan = PlanShard(MakeAttachRequest(center)).value();
  EXPECT_EQ(plan.memory_bytes, (4u << 20) + 64 * 2 * 16 + 2 * 4 * (64 + 16 * 65536));
}

// The largest layout that is allowed does not overflow the count.
TEST(PlanShard, CountsMemoryOfHugeCenters) {
  TestCenter center;
  center.values = (uint64_t{1} << 60) - 1;
  EXPECT_GT(PlanShard(MakeAttachRequest(center)).value().memory_bytes, uint64_t{1} << 62);
}

// Each field that is out of range is named, with what is allowed.
TEST(PlanShard, RefusesWhatIsOutOfRange) {
  struct Case {
    std::function<void(v1::AttachRequest&)> change;
    std::string message;
  };
  const Case cases[] = {
      {[](auto& r) { r.mutable_sender()->set_job_id(""); },
       "job id \"\": 1 to 100 characters of a-z, 0-9 and - are allowed"},
      {[](auto& r) { r.mutable_sender()->set_job_id("../x"); }, "job id \"../x\": 1 to 100 characters"},
      {[](auto& r) { r.mutable_sender()->set_job_id(std::string(101, 'a')); }, "1 to 100 characters"},
      {[](auto& r) { r.mutable_job()->set_rule(0); }, "job.rule is 0; ELASTIC (1) and NONE (2) are allowed"},
      {[](auto& r) { r.mutable_job()->set_rule(9); }, "job.rule is 9; ELASTIC (1) and NONE (2) are allowed"},
      {[](auto& r) { r.mutable_job()->set_alpha(1); }, "alpha is 1"},
      {[](auto& r) { r.mutable_job()->set_alpha(std::numeric_limits<double>::quiet_NaN()); },
       "job.alpha is not a finite number"},
      {[](auto& r) { r.mutable_job()->set_groups(0); }, "job.groups is 0; 1 to 1024 are allowed"},
      {[](auto& r) { r.mutable_job()->set_groups(1025); }, "job.groups is 1025; 1 to 1024 are allowed"},
      {[](auto& r) { r.mutable_job()->set_ranks(0); }, "job.ranks is 0; 1 to 1024 are allowed"},
      {[](auto& r) { r.mutable_job()->set_shard_count(0); }, "job.shard_count is 0; 1 to 65536 are allowed"},
      {[](auto& r) { r.mutable_job()->set_job_key(std::string(256, 'k')); },
       "job.job_key has 256 bytes; 0 to 255 are allowed"},
      {[](auto& r) { r.mutable_job()->set_shard_index(1); }, "job.shard_index is 1; 0 to 0 are allowed"},
      {[](auto& r) { r.clear_layout(); }, "layout: it has no parameters"},
      {[](auto& r) { r.clear_job(); }, "job.groups is 0"},
  };
  for (const Case& c : cases) {
    v1::AttachRequest request = MakeAttachRequest({});
    c.change(request);
    const absl::Status status = PlanShard(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

// A group that comes with another job file, or another list of servers, is told what differs.
TEST(ComparePlans, NamesTheFirstDifference) {
  struct Case {
    std::function<void(v1::AttachRequest&)> change;
    std::string message;
  };
  const Case cases[] = {
      {[](auto& r) { r.mutable_job()->set_alpha(0.5); },
       "job.alpha differs: the center was made with 0.25, the group has 0.5; all groups of a job run with the same job "
       "file"},
      {[](auto& r) { r.mutable_job()->set_job_key("k"); }, "another job had the id job-1 here"},
      {[](auto& r) { r.mutable_job()->set_rule(2); }, "job.rule differs: the center was made with 1, the group has 2"},
      {[](auto& r) { r.mutable_job()->set_groups(3); },
       "job.groups differs: the center was made with 2, the group has 3"},
      {[](auto& r) { r.mutable_job()->set_ranks(2); },
       "job.ranks differs: the center was made with 1, the group has 2"},
      {[](auto& r) { r.mutable_job()->set_shard_count(2); },
       "job.shard_count differs: the center was made with 1, the group has 2"},
      {[](auto& r) { r.mutable_layout()->mutable_parameters(0)->set_name("v"); },
       "layout differs from the center's at parameter 0: the center has w float32 [10], the group has v float32 [10]"},
  };
  const ShardPlan center = PlanShard(MakeAttachRequest({})).value();
  EXPECT_TRUE(ComparePlans(center, center).ok());
  for (const Case& c : cases) {
    v1::AttachRequest request = MakeAttachRequest({});
    c.change(request);
    const absl::Status status = ComparePlans(center, PlanShard(request).value());
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace hooke
