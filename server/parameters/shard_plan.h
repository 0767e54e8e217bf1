#ifndef HOOKE_SERVER_PARAMETERS_SHARD_PLAN_H_
#define HOOKE_SERVER_PARAMETERS_SHARD_PLAN_H_

// Plans a job's shard on this server: its blocks, its rule and its memory. The plan is checked before any memory is
// taken. Pure.
//
// A job whose number of groups changes begins a new generation, with a new plan. JobSpecForShard.first_incarnation
// names the generation: it is higher in each later one.

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "algorithms/sharding.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/attach.h"
#include "server/parameters/job_rule.h"

namespace hooke {

// The largest window of a rank. A window is the number of blocks that the rank may have sent without an answer. This
// many are enough for sending, applying and answering to overlap.
inline constexpr uint32_t kWindowBlocks = 16;
// Memory that the ranks of kExchangeGroups groups together may take for exchanges: answers kept for repeats and, for
// each connection, a message and its answer. The window is chosen to fit. With more groups the limit grows in
// proportion.
inline constexpr uint64_t kExchangeBytes = 32 << 20;
inline constexpr uint32_t kExchangeGroups = 32;

// Memory of a block besides its values: the shard's record of it and, under rules with rounds, its round.
inline constexpr uint64_t kBlockObjectBytes = 384;

// Returns the ranks of each group that exchange, counted from rank 0.
inline uint32_t SlicesOf(const v1::JobSpecForShard& job) { return job.slices() > 0 ? job.slices() : job.ranks(); }

struct ShardPlan {
  std::string job_id;
  v1::Layout layout;  // The whole center.
  v1::JobSpecForShard job;
  JobRule rule;
  Partition partition{0};  // The whole center.
  Range blocks;            // This shard's blocks; may be empty if there are more servers than blocks.
  // The window of a rank, which is sent as AttachResponse.window_blocks. The shard keeps this many answers for each
  // rank.
  uint32_t window_blocks = 1;
  // An upper bound of the shard's memory. It counts values and the rule's state, copies of blocks while they change,
  // the records of blocks, groups and ranks, and the layout. It also counts the answers kept and the messages of all
  // connections.
  uint64_t memory_bytes = 0;

  // Returns the range of the whole vector that block `block` of the partition holds.
  Range BlockRange(uint64_t block) const { return partition.BlockRange(block); }
  uint32_t slices() const { return SlicesOf(job); }
  // Returns the blocks of the partition that a rank exchanges.
  Range SliceOf(uint32_t rank) const { return rank < slices() ? partition.SliceBlocks({rank, slices()}) : Range{}; }
  // Returns how many of a block's values are parameters of the model. They come first; buffers follow.
  uint64_t BlockParameters(uint64_t block) const;
  // Returns the index within the shard of the block that starts at `first` and has `values` values. INVALID_ARGUMENT:
  // there is no such block; the message names what is allowed.
  absl::StatusOr<uint64_t> FindBlock(uint64_t first, uint64_t values) const;

  // Returns how many fragments the center is exchanged in; >= 1.
  uint32_t fragments() const { return std::max<uint32_t>(job.fragments(), 1); }
  // Returns whether block `block` of the shard is the rank's first one on this server, or the first one of a fragment.
  bool OpensExchange(uint32_t rank, uint64_t block) const;
  // Returns whether an exchange may have to wait for other groups.
  bool turns_may_wait() const { return rule.traits.in_rounds || rule.traits.staleness_bound > 0; }
  // Returns whether a group makes no step after step `step`. False for all steps if the rule does not step the center.
  bool IsLastStep(uint64_t step) const;
  // Returns the number of passes over the data that the groups had done before step `step`, which is >= 1.
  double EpochBefore(uint64_t step) const;
};

// Returns the largest window, 1 to kWindowBlocks, with which all ranks of the job keep within their limit
// (kExchangeBytes). Returns 1 if none does. It follows from the plan alone, so a restarted server has the same window.
uint32_t ChooseWindow(const ShardPlan& plan);

// Returns the plan for the shard that `request` asks for. INVALID_ARGUMENT names the field that is wrong and what is
// allowed. `block_values` >= 1.
absl::StatusOr<ShardPlan> PlanShard(const v1::AttachRequest& request, uint64_t block_values = kBlockValues);

// Checks a sender's key. PERMISSION_DENIED if `key` is not the center's key, which means that the sender does not
// belong to job `job_id`. Two empty keys are equal.
absl::Status CheckKey(absl::string_view job_id, absl::string_view center_key, absl::string_view key);

// Checks that the center belongs to the group's job. FAILED_PRECONDITION if the center of this id belongs to another
// job. The message tells the user what to do. Jobs with equal keys are one job, also if both keys are empty.
absl::Status CompareKeys(absl::string_view center_key, const ShardPlan& group);

// Checks that the plans are equal. FAILED_PRECONDITION names the first difference between the center's plan and the
// group's. Keys are compared first.
absl::Status ComparePlans(const ShardPlan& center, const ShardPlan& group);

// Returns the plan with which the center goes on when `group`, of a later generation, attaches. It has the blocks of
// the center, and all else from the group. FAILED_PRECONDITION: the generations differ in more than a later generation
// may, which is its groups, ranks, slices, group_samples, alpha, quorum, bmuf's momentum, and where it begins and ends;
// the message is that of ComparePlans. INVALID_ARGUMENT: the group's plan does not fit the center's blocks.
absl::StatusOr<ShardPlan> NextGeneration(const ShardPlan& center, const ShardPlan& group);

// Checks that the plan has such a group, rank and incarnation. INVALID_ARGUMENT: it does not. ABORTED: the incarnation
// is of an earlier generation, whatever its group.
absl::Status CheckSpeakerOf(const ShardPlan& plan, const Speaker& speaker);

// Returns the ABORTED status for groups of a generation that is over. The present one begins with incarnation `first`.
absl::Status GenerationOver(absl::string_view job_id, uint32_t first);

// Checks that a job id has 1 to 100 characters of [a-z0-9-], so that it can be part of a file's name. INVALID_ARGUMENT
// otherwise.
absl::Status CheckJobId(absl::string_view job_id);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SHARD_PLAN_H_
