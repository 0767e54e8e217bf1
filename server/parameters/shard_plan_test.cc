#include "server/parameters/shard_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "proto/job.pb.h"
#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// A shard has the blocks that algorithms/sharding.h gives it, even if there are more servers than blocks.
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

// A shard counts this memory, in bytes: its values, its layout and its job description; 384 for each block, 24 for each
// block and group, 256 for each group. For each rank it counts 64, the answers kept, a message and its answer per block
// of the window, and a copy of a block. With rounds it keeps no answers. Each rank then takes 240 and 8 for each group,
// instead of the 64.
TEST(PlanShard, CountsMemory) {
  TestCenter center;
  center.values = 1 << 20;
  center.ranks = 4;
  const ShardPlan plan = PlanShard(MakeAttachRequest(center)).value();
  const uint64_t held =
      (4u << 20) + 64 * (2 * 24 + 384) + 2 * 256 + plan.layout.SpaceUsedLong() + plan.job.SpaceUsedLong();
  EXPECT_EQ(plan.memory_bytes, held + uint64_t{8} * (64 + (3 * 16 + 1) * uint64_t{65536}));
}

// The window is the largest with which all ranks together keep within the bytes for exchanges, but at least one block.
TEST(PlanShard, ChoosesTheWindow) {
  struct Case {
    uint64_t mebibytes;
    uint32_t groups, ranks, servers;
    uint32_t window;
  };
  const Case cases[] = {
      {64, 1, 1, 1, 16},    // Few groups have the largest window.
      {64, 4, 2, 1, 16},    // 8 ranks: 24 MiB.
      {64, 16, 1, 1, 10},   // 16 ranks x 10 blocks x 3 x 64 KiB = 30 MiB.
      {64, 32, 1, 1, 5},    // 30 MiB.
      {64, 32, 4, 1, 1},    // 24 MiB.
      {64, 32, 4, 2, 2},    // Each server exchanges with two of the four ranks.
      {1, 32, 4, 1, 1},     // A rank exchanges four blocks, but windows of two would take 48 MiB.
      {1, 8, 16, 1, 16},    // A slice has one block, so a larger window takes no memory.
      {64, 256, 1, 1, 5},   // With more groups the limit is larger.
      {64, 1024, 16, 1, 1}  // The window has at least one block.
  };
  for (const Case& c : cases) {
    TestCenter center;
    center.values = c.mebibytes << 18;
    center.groups = c.groups;
    center.ranks = c.ranks;
    center.shard_count = c.servers;
    EXPECT_EQ(PlanShard(MakeAttachRequest(center)).value().window_blocks, c.window)
        << c.mebibytes << " MiB, " << c.groups << " groups of " << c.ranks << ", " << c.servers << " servers";
  }
}

// With 32 groups a server needs at most 1.1 times the center and 64 MiB, if the rule keeps no state. Momentum adds the
// size of one center, Adam that of two.
TEST(PlanShard, IsLeanWithManyGroups) {
  TestCenter center;
  center.groups = 32;
  for (const uint64_t mebibytes : {1, 64, 1024}) {
    center.values = mebibytes << 18;
    const double center_bytes = 4.0 * static_cast<double>(center.values);
    const auto bytes = [&center](const std::function<void(v1::JobSpecForShard&)>& change) {
      v1::AttachRequest request = MakeStepRequest(center, v1::AveragingSpec::ELASTIC, 0.1);
      change(*request.mutable_job());
      return static_cast<double>(PlanShard(request).value().memory_bytes);
    };
    const double fixed = 40 << 20;  // The server's program itself takes the rest of the 64 MiB beside the center.
    EXPECT_LE(bytes([](auto& j) { j.set_rule(v1::AveragingSpec::ELASTIC); }), 1.1 * center_bytes + fixed);
    for (const auto rule : {v1::AveragingSpec::SYNC, v1::AveragingSpec::AVERAGE, v1::AveragingSpec::ASYNC}) {
      EXPECT_LE(bytes([rule](auto& j) { j.set_rule(rule); }), 1.1 * center_bytes + fixed);
    }
    const auto momentum = [](v1::JobSpecForShard& job) {
      job.set_rule(v1::AveragingSpec::DILOCO);
      job.mutable_optimizer()->set_momentum(0.9);
    };
    EXPECT_LE(bytes(momentum), 2.1 * center_bytes + fixed);
    EXPECT_GE(bytes(momentum), 2 * center_bytes);
    const auto adam = [](v1::JobSpecForShard& job) {
      job.set_rule(v1::AveragingSpec::SYNC);
      job.mutable_optimizer()->set_name(v1::OptimizerSpec::ADAM);
      job.mutable_optimizer()->set_epsilon(1e-8);
    };
    EXPECT_LE(bytes(adam), 3.1 * center_bytes + fixed);
    EXPECT_GE(bytes(adam), 3 * center_bytes);
  }
}

// Returns a request for a job of synchronous SGD.
v1::AttachRequest MakeSyncRequest() { return MakeStepRequest({}, v1::AveragingSpec::SYNC, 0.1); }

// PlanShard also checks the fields of rules that step the center.
TEST(PlanShard, RefusesAStepThatIsOutOfRange) {
  struct Case {
    std::function<void(v1::JobSpecForShard&)> change;
    std::string message;
  };
  const Case cases[] = {
      {[](auto& j) { j.set_interval(0); }, "job.interval is 0; 1 to 4294967295 are allowed"},
      {[](auto& j) { j.set_steps_per_epoch(0); }, "job.steps_per_epoch is 0"},
      {[](auto& j) { j.set_parameters(11); }, "job.parameters is 11; the layout has 10 values"},
      {[](auto& j) { j.set_slices(2); }, "job.slices is 2; 0 to 1 are allowed"},
      {[](auto& j) { j.add_group_samples(64); },
       "job.group_samples has 1 numbers; 0 or job.groups, which is 2, are allowed"},
      {[](auto& j) {
         j.add_group_samples(64);
         j.add_group_samples(0);
       },
       "job.group_samples is 0; 1 to 1073741824 are allowed"},
      {[](auto& j) { j.set_quorum(3); }, "job.quorum is 3; 0 to 2 are allowed"},
      {[](auto& j) { j.set_grace_seconds(-1); }, "job.grace_seconds is -1; 0 to 10 is allowed"},
      {[](auto& j) { j.set_fragments(65); }, "job.fragments is 65; 0 to 64 are allowed"},
      {[](auto& j) { j.set_staleness_bound(4000001); }, "job.staleness_bound is 4000001; 0 to 4000000 are allowed"},
      {[](auto& j) { j.clear_optimizer(); }, "job.optimizer.name is 0; SGD (1), ADAM (2) and ADAMW (3) are allowed"},
      {[](auto& j) { j.mutable_optimizer()->set_momentum(1); }, "optimizer: momentum is 1"},
      {[](auto& j) { j.clear_schedule(); }, "job.schedule.name is 0"},
      {[](auto& j) { j.set_epochs(0); }, "schedule: total_epochs is 0"},
      {[](auto& j) { j.set_rule(v1::AveragingSpec::SSP); }, "ssp rule: staleness_bound is 0"},
  };
  for (const Case& c : cases) {
    v1::AttachRequest request = MakeSyncRequest();
    EXPECT_TRUE(PlanShard(request).ok()) << PlanShard(request).status();
    c.change(*request.mutable_job());
    const absl::Status status = PlanShard(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

// If groups have different numbers of ranks, the first ranks of each have the slices, and the others have none.
TEST(PlanShard, OnlySomeRanksHaveSlices) {
  TestCenter center;
  center.ranks = 3;
  center.values = 10;
  v1::AttachRequest request = MakeAttachRequest(center);
  EXPECT_EQ(PlanShard(request, 1)->SliceOf(0), (Range{0, 4}));
  EXPECT_EQ(PlanShard(request, 1)->SliceOf(2), (Range{7, 10}));
  request.mutable_job()->set_slices(2);
  EXPECT_EQ(PlanShard(request, 1)->SliceOf(1), (Range{5, 10}));
  EXPECT_TRUE(PlanShard(request, 1)->SliceOf(2).empty());

  // Ranks without a slice take no memory, so there may be many of them.
  request.mutable_job()->set_groups(64);
  request.mutable_job()->set_ranks(512);
  EXPECT_TRUE(PlanShard(request, 1).ok()) << PlanShard(request, 1).status();
  request.mutable_job()->set_slices(257);
  EXPECT_THAT(std::string(PlanShard(request, 1).status().message()), HasSubstr("job.groups times job.slices is 16448"));
  request.mutable_job()->clear_slices();
  EXPECT_THAT(std::string(PlanShard(request, 1).status().message()), HasSubstr("job.groups times job.ranks is 32768"));
}

TEST(PlanShard, CountsMemoryOfRounds) {
  v1::AttachRequest request = MakeSyncRequest();
  request.mutable_job()->set_groups(40);
  const ShardPlan plan = PlanShard(request).value();
  const uint64_t held = 2 * 40 + 40 * 24 + 384 + 40 * 256 + plan.layout.SpaceUsedLong() + plan.job.SpaceUsedLong();
  EXPECT_EQ(plan.memory_bytes, held + uint64_t{40} * (240 + 40 * 8) + uint64_t{40} * 2 * 40);
}

// The memory of the layout is counted, because a peer chooses the layout. Here it has a thousand parameters with long
// names.
TEST(PlanShard, CountsTheLayout) {
  TestCenter center;
  center.values = 1000;
  v1::AttachRequest request = MakeAttachRequest(center);
  const uint64_t before = PlanShard(request).value().memory_bytes;
  const v1::Parameter one = request.layout().parameters(0);
  request.mutable_layout()->clear_parameters();
  for (int i = 0; i < 1000; ++i) {
    v1::Parameter& parameter = *request.mutable_layout()->add_parameters();
    parameter = one;
    parameter.set_name(std::string(200, 'w') + std::to_string(i));
    parameter.set_shape(0, 1);
  }
  EXPECT_GE(PlanShard(request).value().memory_bytes, before + uint64_t{200} * 1000);
}

// The count of the largest allowed layout does not overflow.
TEST(PlanShard, CountsMemoryOfHugeCenters) {
  TestCenter center;
  center.values = (uint64_t{1} << 60) - 1;
  EXPECT_GT(PlanShard(MakeAttachRequest(center)).value().memory_bytes, uint64_t{1} << 62);
}

// If a field is out of range, the error names it and what is allowed.
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
      {[](auto& r) { r.mutable_job()->set_rule(0); }, "job.rule is 0; 1 (elastic) to 10 (diloco) are allowed"},
      {[](auto& r) { r.mutable_job()->set_rule(11); }, "job.rule is 11; 1 (elastic) to 10 (diloco) are allowed"},
      {[](auto& r) { r.mutable_job()->set_alpha(1); }, "alpha is 1"},
      {[](auto& r) { r.mutable_job()->set_alpha(std::numeric_limits<double>::quiet_NaN()); },
       "job.alpha is not a finite number"},
      {[](auto& r) { r.mutable_job()->set_groups(0); }, "job.groups is 0; 1 to 1024 are allowed"},
      {[](auto& r) { r.mutable_job()->set_groups(1025); }, "job.groups is 1025; 1 to 1024 are allowed"},
      {[](auto& r) { r.mutable_job()->set_ranks(0); }, "job.ranks is 0; 1 to 16384 are allowed"},
      {[](auto& r) { r.mutable_job()->set_ranks(16385); }, "job.ranks is 16385; 1 to 16384 are allowed"},
      {[](auto& r) {
         r.mutable_job()->set_groups(2);
         r.mutable_job()->set_ranks(8193);
       },
       "job.groups times job.ranks is 16386; at most 16384 are allowed"},
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

// An exchange opens with the first block of the rank's slice on the server and, with fragments, of each fragment.
TEST(ShardPlan, OpensExchanges) {
  TestCenter center;
  center.values = 16;
  center.ranks = 2;
  v1::AttachRequest request = MakeStepRequest(center, v1::AveragingSpec::DILOCO, 1);
  const auto opening = [&request](uint32_t rank) {
    const ShardPlan plan = PlanShard(request, 2).value();
    std::vector<uint64_t> opening;
    for (uint64_t block = 0; block < plan.blocks.size(); ++block) {
      if (plan.OpensExchange(rank, block)) opening.push_back(block);
    }
    return opening;
  };
  EXPECT_EQ(opening(0), (std::vector<uint64_t>{0}));
  EXPECT_EQ(opening(1), (std::vector<uint64_t>{4}));
  request.mutable_job()->set_fragments(2);
  EXPECT_EQ(opening(0), (std::vector<uint64_t>{0, 2}));
  EXPECT_EQ(opening(1), (std::vector<uint64_t>{4, 6}));
}

// The last step is that of the job's last epoch, or the total number of steps if the job says one. A generation counts
// passes over the data from where it begins.
TEST(ShardPlan, CountsStepsAndEpochs) {
  TestCenter center;
  center.first_incarnation = 5;
  center.first_step = 20;
  v1::AttachRequest request = MakeStepRequest(center, v1::AveragingSpec::SYNC, 1);
  request.mutable_sender()->set_incarnation(5);
  request.mutable_job()->set_steps_per_epoch(10);
  request.mutable_job()->set_epochs(5);
  request.mutable_job()->set_first_epoch(2);
  const ShardPlan by_epochs = PlanShard(request).value();
  EXPECT_FALSE(by_epochs.IsLastStep(49));
  EXPECT_TRUE(by_epochs.IsLastStep(50));
  EXPECT_EQ(by_epochs.EpochBefore(21), 2);
  EXPECT_EQ(by_epochs.EpochBefore(26), 2.5);
  EXPECT_EQ(by_epochs.EpochBefore(1), 2);
  request.mutable_job()->set_steps_total(33);
  const ShardPlan by_steps = PlanShard(request).value();
  EXPECT_FALSE(by_steps.IsLastStep(32));
  EXPECT_TRUE(by_steps.IsLastStep(33));
  EXPECT_FALSE(PlanShard(MakeAttachRequest({})).value().IsLastStep(1000000));
}

// If a group comes with another job file, or another list of servers, the error names the difference.
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
      {[](auto& r) { r.mutable_job()->set_rule(2); },
       "job.rule differs: the center was made with elastic, the group has none; all groups of a job run with the same "
       "job file"},
      {[](auto& r) { r.mutable_job()->set_compression(4); },
       "job.compression differs: the center was made with none, the group has int8; all groups of a job run with the "
       "same job file"},
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

// A job with unset compression and one with COMPRESSION_NONE are the same.
TEST(ComparePlans, NoCompressionIsNoneInBothWays) {
  v1::AttachRequest request = MakeAttachRequest({});
  const ShardPlan unsaid = PlanShard(request).value();
  request.mutable_job()->set_compression(v1::AveragingSpec::COMPRESSION_NONE);
  const ShardPlan said = PlanShard(request).value();
  EXPECT_EQ(ComparePlans(unsaid, said), absl::OkStatus());
  EXPECT_EQ(ComparePlans(said, unsaid), absl::OkStatus());
}

// A job with an optional field at 0 and one without that field are the same. Older versions leave it out.
TEST(ComparePlans, AnOptionalZeroMayBeLeftOut) {
  v1::AttachRequest request = MakeSyncRequest();
  request.mutable_job()->mutable_optimizer()->clear_weight_decay();
  const ShardPlan unsaid = PlanShard(request).value();
  request.mutable_job()->mutable_optimizer()->set_weight_decay(0);
  const ShardPlan said = PlanShard(request).value();
  EXPECT_EQ(ComparePlans(unsaid, said), absl::OkStatus());
  EXPECT_EQ(ComparePlans(said, unsaid), absl::OkStatus());
}

// ComparePlans also names differences in interval, quorum, optimizer and schedule. It names a different model first,
// because other numbers then differ in consequence.
TEST(ComparePlans, NamesWhatRulesNeed) {
  struct Case {
    std::function<void(v1::AttachRequest&)> change;
    std::string message;
  };
  const Case cases[] = {
      {[](auto& r) { r.mutable_job()->set_interval(2); }, "center -> group: modified: interval: 1 -> 2; all groups"},
      {[](auto& r) { r.mutable_job()->set_quorum(2); }, "modified: quorum: 1 -> 2"},
      {[](auto& r) { r.mutable_job()->mutable_optimizer()->set_momentum(0.5); },
       "modified: optimizer.momentum: 0 -> 0.5"},
      {[](auto& r) { r.mutable_job()->mutable_optimizer()->set_learning_rate(0.2); },
       "modified: optimizer.learning_rate: 0.1 -> 0.2"},
      {[](auto& r) { r.mutable_job()->mutable_schedule()->set_warmup_epochs(0.5); },
       "modified: schedule.warmup_epochs: 0 -> 0.5"},
      {[](auto& r) {
         r.mutable_job()->set_parameters(9);
         r.mutable_layout()->mutable_parameters(0)->set_shape(0, 9);
       },
       "layout differs from the center's at parameter 0: the center has w float32 [10], the group has w float32 [9]"},
  };
  const ShardPlan center = PlanShard(MakeSyncRequest()).value();
  EXPECT_TRUE(ComparePlans(center, center).ok());
  for (const Case& c : cases) {
    v1::AttachRequest request = MakeSyncRequest();
    c.change(request);
    const absl::Status status = ComparePlans(center, PlanShard(request).value());
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace hooke
