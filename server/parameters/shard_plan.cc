#include "server/parameters/shard_plan.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "algorithms/compression.h"
#include "algorithms/fragments.h"
#include "algorithms/rule_facts.h"
#include "job/job_keys.h"
#include "proto/job.pb.h"
#include "server/parameters/layout.h"
#include "wire/frame.h"

namespace hooke {
namespace {

// Compares in a time that does not depend on where the keys differ. So nobody can guess a key piece by piece from the
// time.
bool SameKey(absl::string_view center_key, absl::string_view key) {
  if (center_key.size() != key.size()) return false;
  volatile unsigned char differs = 0;
  for (size_t i = 0; i < key.size(); ++i) differs = differs | static_cast<unsigned char>(center_key[i] ^ key[i]);
  return differs == 0;
}

constexpr uint32_t kMaxGroups = 1024;
constexpr uint32_t kMaxRanks = kJobRanksMax;  // Of each group, and of all groups together.
constexpr uint32_t kMaxShards = 65536;
constexpr uint32_t kMaxSamples = 1 << 30;  // Of a group's step.
constexpr uint64_t kMaxSteps = uint64_t{1} << 53;
constexpr size_t kMaxKeyBytes = 255;
constexpr double kAppliedBytes = 24;  // For each block and group: its elements of Block::applied and Block::seen.
constexpr double kWindowBytes = 64;   // For each rank: its AnswerWindow without the answers.
constexpr double kGroupBytes = 256;   // For each group: everything else that a shard keeps for it.
// Memory under rules with rounds. kRoundSliceBytes is per rank: its RoundBook::Place and its queued contribution.
// kLiveBytes is per rank and group: the group's numbers in `groups` and `live` of the rank's RoundBook::Pass.
constexpr double kRoundSliceBytes = 240;
constexpr double kLiveBytes = 8;

absl::Status CheckGroupSamples(const v1::JobSpecForShard& job) {
  if (job.group_samples().empty()) return absl::OkStatus();
  if (static_cast<uint32_t>(job.group_samples_size()) != job.groups()) {
    return absl::InvalidArgumentError(absl::StrCat("job.group_samples has ", job.group_samples_size(),
                                                   " numbers; 0 or job.groups, which is ", job.groups(),
                                                   ", are allowed"));
  }
  for (const uint32_t samples : job.group_samples()) {
    if (absl::Status status = CheckRange("group_samples", samples, kMaxSamples); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Checks where the generation begins and ends.
absl::Status CheckGeneration(const v1::JobSpecForShard& job) {
  if (job.first_step() > kMaxSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.first_step is ", job.first_step(), "; 0 to ", kMaxSteps, " are allowed"));
  }
  if (!(std::isfinite(job.first_epoch()) && job.first_epoch() >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.first_epoch is ", job.first_epoch(), "; a finite number of at least 0 is allowed"));
  }
  if (job.first_incarnation() == 0 && (job.first_step() > 0 || job.first_epoch() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.first_step is ", job.first_step(), " and job.first_epoch ", job.first_epoch(),
                     ", but job.first_incarnation is 0: the first generation of a job begins at step 0 and epoch 0"));
  }
  if (job.steps_total() == 0 || job.steps_total() >= job.first_step()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("job.steps_total is ", job.steps_total(),
                                                 "; 0, or at least job.first_step, which is ", job.first_step(),
                                                 ", is allowed"));
}

absl::Status CheckJob(const v1::JobSpecForShard& job) {
  if (absl::Status status = CheckRange("groups", job.groups(), kMaxGroups); !status.ok()) return status;
  if (absl::Status status = CheckRange("ranks", job.ranks(), kMaxRanks); !status.ok()) return status;
  if (job.slices() > job.ranks()) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.slices is ", job.slices(), "; 0 to ", job.ranks(), " are allowed"));
  }
  const char* const exchanging = job.slices() > 0 ? "slices" : "ranks";
  if (const uint64_t all = uint64_t{job.groups()} * SlicesOf(job); all > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.groups times job.", exchanging, " is ", all, "; at most ", kMaxRanks, " are allowed"));
  }
  if (absl::Status status = CheckGroupSamples(job); !status.ok()) return status;
  if (absl::Status status = CheckGeneration(job); !status.ok()) return status;
  if (absl::Status status = CheckRange("shard_count", job.shard_count(), kMaxShards); !status.ok()) return status;
  if (job.job_key().size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.job_key has ", job.job_key().size(), " bytes; 0 to ", kMaxKeyBytes, " are allowed"));
  }
  if (job.shard_index() < job.shard_count()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("job.shard_index is ", job.shard_index(), "; 0 to ", job.shard_count() - 1, " are allowed"));
}

// Returns the bytes of a full block's values. This function and those below count memory as upper bounds, in floating
// point so that no product overflows.
double BlockBytes(const ShardPlan& plan) {
  return sizeof(float) * static_cast<double>(std::min(plan.partition.block_values(), plan.partition.values()));
}

// Returns the memory for the exchanges of all ranks if their window has `window_blocks` blocks.
double ExchangeBytes(const ShardPlan& plan, uint32_t window_blocks) {
  uint64_t blocks = 0;
  for (uint32_t rank = 0; rank < plan.slices(); ++rank) {
    const Range slice = Intersect(plan.SliceOf(rank), plan.blocks);
    blocks += std::min<uint64_t>(window_blocks, slice.size());
  }
  const double groups = plan.job.groups();
  const double kept = plan.rule.traits.answers_center ? 0 : 1;
  // Counts a message and its answer. With compression a third block is counted for the encoded values.
  const double messages = plan.rule.sent.compression == Compression::kNone ? 2 : 3;
  return groups * static_cast<double>(blocks) * BlockBytes(plan) * (kept + messages) +
         groups * plan.slices() * kept * kWindowBytes;
}

double MemoryBytes(const ShardPlan& plan) {
  const double groups = plan.job.groups();
  const double blocks = static_cast<double>(plan.blocks.size());
  const double all_slices = groups * plan.slices();
  // How many blocks may be copied at the same time while they change.
  const double watched = std::min(all_slices, blocks);
  const double held = (blocks + watched) * BlockBytes(plan) * (1 + plan.rule.traits.state_values) +
                      blocks * (groups * kAppliedBytes + kBlockObjectBytes);
  const double round_slices = plan.rule.traits.in_rounds ? all_slices : 0;
  const double known = groups * kGroupBytes + round_slices * (kRoundSliceBytes + groups * kLiveBytes) +
                       static_cast<double>(plan.layout.SpaceUsedLong() + plan.job.SpaceUsedLong());
  return held + known + ExchangeBytes(plan, plan.window_blocks);
}

absl::Status Differs(absl::string_view what, const absl::AlphaNum& center, const absl::AlphaNum& group) {
  return absl::FailedPreconditionError(absl::StrCat("job.", what, " differs: the center was made with ", center,
                                                    ", the group has ", group,
                                                    "; all groups of a job run with the same job file"));
}

// Returns the rule's name in job files. `rule` was checked.
std::string RuleText(uint32_t rule) {
  return absl::AsciiStrToLower(v1::AveragingSpec::Rule_Name(static_cast<v1::AveragingSpec::Rule>(rule)));
}

// Returns the job's compression. An unset field means none.
v1::AveragingSpec::Compression CompressionOf(const v1::JobSpecForShard& job) {
  if (job.compression() == 0) return v1::AveragingSpec::COMPRESSION_NONE;
  return static_cast<v1::AveragingSpec::Compression>(job.compression());
}

std::string CompressionText(const v1::JobSpecForShard& job) {
  const std::string name = v1::AveragingSpec::Compression_Name(CompressionOf(job));
  return absl::AsciiStrToLower(absl::StripPrefix(name, "COMPRESSION_"));
}

// Example: "100 steps". If the length of the training is not known, steps_per_epoch is the largest uint64.
std::string LengthText(const v1::JobSpecForShard& job) {
  if (job.steps_total() > 0) return absl::StrCat("up to step ", job.steps_total());
  if (job.steps_per_epoch() == std::numeric_limits<uint64_t>::max()) return "an unknown number of steps";
  if (job.epochs() == 1) return absl::StrCat(job.steps_per_epoch(), " steps");
  return absl::StrCat(job.epochs(), " epochs of ", job.steps_per_epoch(), " steps");
}

// Compares how long the groups train. A user's program may pass a wrong length, so the text says what to change in the
// program.
absl::Status CompareLengths(const v1::JobSpecForShard& center, const v1::JobSpecForShard& group) {
  const bool same = center.epochs() == group.epochs() && center.steps_per_epoch() == group.steps_per_epoch() &&
                    center.steps_total() == group.steps_total();
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this group is to train ", LengthText(group), ", but the first group of the job ",
                   LengthText(center), ": under the rule ", RuleText(center.rule()),
                   " servers count the steps of all groups alike, so give hooke_begin the same plan in all groups (in "
                   "Python: the same number of epochs, samples and batch_size, or the same steps_total)"));
}

// Compares the fields that were not compared before, and names the first that differs.
absl::Status CompareRest(const v1::JobSpecForShard& center, v1::JobSpecForShard group) {
  group.set_compression(center.compression());  // The compression was compared before. Unset and none mean the same.
  google::protobuf::util::MessageDifferencer differencer;
  // For a server, an optional field that is 0 means the same as an absent one.
  differencer.set_message_field_comparison(google::protobuf::util::MessageDifferencer::EQUIVALENT);
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(center, group)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the job differs from the center's, center -> group: ",
                   absl::StripAsciiWhitespace(absl::string_view(differences).substr(0, differences.find('\n'))),
                   "; all groups of a job run with the same job file"));
}

// Sets all of `job` that belongs to one generation as it is in `from`.
void SetGeneration(const v1::JobSpecForShard& from, v1::JobSpecForShard& job) {
  job.set_groups(from.groups());
  job.set_ranks(from.ranks());
  job.set_slices(from.slices());
  *job.mutable_group_samples() = from.group_samples();
  job.set_alpha(from.alpha());
  job.set_quorum(from.quorum());
  job.set_epochs(from.epochs());
  job.set_steps_per_epoch(from.steps_per_epoch());
  job.set_first_incarnation(from.first_incarnation());
  job.set_first_step(from.first_step());
  job.set_first_epoch(from.first_epoch());
  job.set_steps_total(from.steps_total());
  if (FactsOf(*RuleOf(job.rule())).defaults.momentum == kMomentumByGroups) {
    job.mutable_optimizer()->set_momentum(from.optimizer().momentum());
    job.mutable_optimizer()->set_nesterov(from.optimizer().nesterov());
  }
}

}  // namespace

uint32_t ChooseWindow(const ShardPlan& plan) {
  const double share = std::max(1.0, static_cast<double>(plan.job.groups()) / kExchangeGroups);
  uint32_t window = kWindowBlocks;
  while (window > 1 && ExchangeBytes(plan, window) > share * kExchangeBytes) --window;
  return window;
}

absl::StatusOr<ShardPlan> PlanShard(const v1::AttachRequest& request, uint64_t block_values) {
  if (absl::Status status = CheckJobId(request.sender().job_id()); !status.ok()) return status;
  if (absl::Status status = CheckJob(request.job()); !status.ok()) return status;
  absl::StatusOr<JobRule> rule = ReadJobRule(request.job());
  if (!rule.ok()) return rule.status();
  absl::StatusOr<uint64_t> values = CheckLayout(request.layout());
  if (!values.ok()) return values.status();
  if (request.job().parameters() > *values) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.parameters is ", request.job().parameters(), "; the layout has ", *values, " values"));
  }
  // Each block is encoded by itself, so its values must be whole runs.
  if (rule->sent.compression != Compression::kNone && block_values % kCompressionRun != 0) {
    return absl::InvalidArgumentError(absl::StrCat("job.compression needs blocks of a multiple of ", kCompressionRun,
                                                   " values; this server's have ", block_values));
  }
  ShardPlan plan;
  plan.job_id = request.sender().job_id();
  plan.layout = request.layout();
  plan.job = request.job();
  plan.rule = *rule;
  plan.partition = Partition(*values, block_values);
  plan.blocks = plan.partition.ShardBlocks({plan.job.shard_index(), plan.job.shard_count()});
  plan.window_blocks = ChooseWindow(plan);
  plan.memory_bytes = static_cast<uint64_t>(std::min(MemoryBytes(plan), 9e18));
  return plan;
}

absl::Status CheckKey(absl::string_view job_id, absl::string_view center_key, absl::string_view key) {
  if (SameKey(center_key, key)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "this is not the key of job ", job_id,
      "; only its groups, which the coordinator has started, have it (or another job had this id on this server)"));
}

absl::Status CompareKeys(absl::string_view center_key, const ShardPlan& group) {
  if (SameKey(center_key, group.job.job_key())) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "another job had the id ", group.job_id, " here, and its center is kept; submit the job under another name, or ",
      "stop this server, remove the files ", group.job_id,
      ".*.snapshot from the folder centers of its state and start "
      "it again"));
}

absl::Status ComparePlans(const ShardPlan& center, const ShardPlan& group) {
  if (absl::Status status = CompareKeys(center.job.job_key(), group); !status.ok()) return status;
  if (center.job.shard_index() != group.job.shard_index()) {
    return Differs("shard_index", center.job.shard_index(), group.job.shard_index());
  }
  if (center.job.shard_count() != group.job.shard_count()) {
    return Differs("shard_count", center.job.shard_count(), group.job.shard_count());
  }
  if (center.job.groups() != group.job.groups()) return Differs("groups", center.job.groups(), group.job.groups());
  if (center.job.ranks() != group.job.ranks()) return Differs("ranks", center.job.ranks(), group.job.ranks());
  if (center.job.rule() != group.job.rule())
    return Differs("rule", RuleText(center.job.rule()), RuleText(group.job.rule()));
  if (CompressionOf(center.job) != CompressionOf(group.job)) {
    return Differs("compression", CompressionText(center.job), CompressionText(group.job));
  }
  if (center.job.alpha() != group.job.alpha()) return Differs("alpha", center.job.alpha(), group.job.alpha());
  // Compare the model before the rest: a group with another model has other numbers as a consequence.
  if (absl::Status status = CompareLayouts(center.layout, group.layout); !status.ok()) return status;
  if (absl::Status status = CompareLengths(center.job, group.job); !status.ok()) return status;
  return CompareRest(center.job, group.job);
}

absl::StatusOr<ShardPlan> NextGeneration(const ShardPlan& center, const ShardPlan& group) {
  ShardPlan alike = group;
  SetGeneration(center.job, alike.job);
  if (absl::Status status = ComparePlans(center, alike); !status.ok()) return status;
  v1::AttachRequest request;
  request.mutable_sender()->set_job_id(center.job_id);
  *request.mutable_layout() = center.layout;
  *request.mutable_job() = group.job;
  return PlanShard(request, center.partition.block_values());
}

absl::Status CheckSpeakerOf(const ShardPlan& plan, const Speaker& speaker) {
  if (speaker.incarnation == 0) return absl::InvalidArgumentError("sender.incarnation is 0; it is at least 1");
  if (speaker.incarnation < plan.job.first_incarnation()) {
    return GenerationOver(plan.job_id, plan.job.first_incarnation());
  }
  if (speaker.group >= plan.job.groups()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sender.group is ", speaker.group, "; 0 to ", plan.job.groups() - 1, " are allowed"));
  }
  if (speaker.rank < plan.job.ranks()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("sender.rank is ", speaker.rank, "; 0 to ", plan.job.ranks() - 1, " are allowed"));
}

absl::Status GenerationOver(absl::string_view job_id, uint32_t first) {
  return absl::AbortedError(absl::StrCat("the number of groups of job ", job_id,
                                         " has changed: this group is of a generation that is over, and the present "
                                         "one begins with start ",
                                         first, "; stop"));
}

uint64_t ShardPlan::BlockParameters(uint64_t block) const {
  return Intersect(BlockRange(block), {0, job.parameters()}).size();
}

absl::StatusOr<uint64_t> ShardPlan::FindBlock(uint64_t first, uint64_t values) const {
  const Range held = partition.Values(blocks);
  if (first < held.begin || first >= held.end) {
    return absl::InvalidArgumentError(
        absl::StrCat("block.first is ", first, "; this shard holds values ", held.begin, " to before ", held.end));
  }
  const uint64_t block = partition.BlockOf(first);
  const Range range = BlockRange(block);
  if (first == range.begin && values == range.size()) return block - blocks.begin;
  return absl::InvalidArgumentError(absl::StrCat("a block has ", values, " values from value ", first,
                                                 " on; allowed there are ", range.size(), " values from value ",
                                                 range.begin, " on"));
}

bool ShardPlan::OpensExchange(uint32_t rank, uint64_t block) const {
  return OpensFragment(Intersect(SliceOf(rank), blocks), blocks.begin + block, fragments());
}

bool ShardPlan::IsLastStep(uint64_t step) const {
  const uint64_t per_epoch = job.steps_per_epoch();
  if (per_epoch > 0 && job.steps_total() > 0) return step >= job.steps_total();
  return per_epoch > 0 && step / per_epoch >= job.epochs();
}

double ShardPlan::EpochBefore(uint64_t step) const {
  const uint64_t done = step - 1 - std::min(step - 1, job.first_step());
  const uint64_t per_epoch = std::max<uint64_t>(job.steps_per_epoch(), 1);
  return job.first_epoch() + static_cast<double>(done) / static_cast<double>(per_epoch);
}

absl::Status CheckJobId(absl::string_view job_id) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  const bool good =
      !job_id.empty() && job_id.size() <= kJobIdBytesMax && std::all_of(job_id.begin(), job_id.end(), allowed);
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("job id \"", absl::CHexEscape(job_id.substr(0, kJobIdBytesMax)),
                                                 "\": 1 to ", kJobIdBytesMax,
                                                 " characters of a-z, 0-9 and - are allowed"));
}

}  // namespace hooke
