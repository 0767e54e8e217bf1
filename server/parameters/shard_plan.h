#ifndef HOOKE_SERVER_PARAMETERS_SHARD_PLAN_H_
#define HOOKE_SERVER_PARAMETERS_SHARD_PLAN_H_

// What a job's shard on this server will be, worked out and checked before any memory is taken. Pure.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "algorithms/sharding.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/job_rule.h"

namespace hooke {

// The largest window of a rank: enough for sending, applying and answering to overlap.
inline constexpr uint32_t kWindowBlocks = 16;
// What the ranks of so many groups may take together beside the center: answers kept to be repeated, and for each
// connection a message and its answer. Smaller windows keep to it; more groups get more in proportion.
inline constexpr uint64_t kExchangeBytes = 32 << 20;
inline constexpr uint32_t kExchangeGroups = 32;

// What a block takes besides its values: the shard's record of it and, by rules with rounds, its round.
inline constexpr uint64_t kBlockObjectBytes = 384;

struct ShardPlan {
  std::string job_id;
  v1::Layout layout;  // Of the whole center.
  v1::JobSpecForShard job;
  JobRule rule;
  Partition partition{0};      // Of the whole center.
  Range blocks;                // This shard's, within the partition. Empty where there are more servers than blocks.
  uint32_t window_blocks = 1;  // Answers kept per rank to be repeated: AttachResponse.window_blocks.
  uint64_t memory_bytes = 0;   // Values and the rule's state, and copies of blocks that are watched while they change;
                               // what was last applied per block and group; what is known of blocks, of groups and,
                               // in rounds, of their ranks; the layout; the answers kept, and the messages of all
                               // ranks' connections.

  // How a message says which values a block holds.
  Range BlockRange(uint64_t block) const { return partition.BlockRange(block); }
  // How many of a block's values, its first, are parameters of the model.
  uint64_t BlockParameters(uint64_t block) const;
};

// The largest window, 1 to kWindowBlocks, with which all ranks of the job keep within kExchangeBytes. Follows from the
// job alone: a server that was started again repeats what it had answered.
uint32_t ChooseWindow(const ShardPlan& plan);

// The plan for the shard that `request` asks for. INVALID_ARGUMENT naming the field that is wrong and what is allowed.
// `block_values` >= 1.
absl::StatusOr<ShardPlan> PlanShard(const v1::AttachRequest& request, uint64_t block_values = kBlockValues);

// PERMISSION_DENIED where `key` is not the key of the center: whoever speaks is not of job `job_id`. Two empty keys are
// equal.
absl::Status CheckKey(absl::string_view job_id, absl::string_view center_key, absl::string_view key);

// FAILED_PRECONDITION, and what to do, where the group is of another job than the center that has its id. Equal keys,
// also two empty ones, are the same job.
absl::Status CompareKeys(absl::string_view center_key, const ShardPlan& group);

// FAILED_PRECONDITION naming the first thing that differs between a center and what a group believes of it, the key
// first.
absl::Status ComparePlans(const ShardPlan& center, const ShardPlan& group);

// A job id is 1 to 100 characters of [a-z0-9-], so that it can be part of a file's name. INVALID_ARGUMENT otherwise.
absl::Status CheckJobId(absl::string_view job_id);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SHARD_PLAN_H_
