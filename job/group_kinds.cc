#include "job/group_kinds.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/command.h"
#include "job/job_keys.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

constexpr char kGroups[] = "groups";

// The default of a key whose table row has a number as its preset.
uint32_t PresetOf(const char* path) {
  const JobKey& key = *FindJobKey(path);
  return static_cast<uint32_t>(ParseKeyValue(key, *key.preset, /*quoted=*/false).value().integer);
}

// Returns the fault of a kind's value, or "". `path` is the key that has the same range.
std::string FaultOf(const char* path, absl::string_view name, uint32_t value) {
  KeyValue checked;
  checked.text = absl::StrCat(value);
  checked.integer = value;
  const absl::Status status = CheckKeyValue(*FindJobKey(path), checked);
  return status.ok() ? "" : absl::StrCat(name, ": ", status.message());
}

std::string LimitsFaultOf(const v1::GroupKind& kind, const v1::JobSpec& job) {
  if (!HasLimits(kind)) return "";
  if (job.averaging().rule() == v1::AveragingSpec::NONE) {
    return "min and max do not go with averaging.rule none, under which each group trains alone: remove them";
  }
  if (std::string fault = FaultOf("groups.min", "min", kind.min()); !fault.empty()) return fault;
  if (std::string fault = FaultOf("groups.max", "max", kind.max()); !fault.empty()) return fault;
  if (kind.min() > kind.count())
    return absl::StrCat("min: ", kind.min(), " is more than count, which is ", kind.count());
  if (kind.max() < kind.count())
    return absl::StrCat("max: ", kind.max(), " is less than count, which is ", kind.count());
  return "";
}

std::string GpusFaultOf(const v1::GroupKind& kind, const v1::JobSpec& job) {
  if (kind.gpus_per_rank() == 0) return "";
  if (!HasCommand(job))
    return "gpus_per_rank: goes only with command; the built-in networks train on the CPU: remove it";
  return FaultOf("groups.gpus_per_rank", "gpus_per_rank", kind.gpus_per_rank());
}

// If only one of the two limits is given, the other one becomes the number of groups.
template <typename Groups>
void FillLimits(Groups& groups) {
  if (groups.min() == 0 && groups.max() == 0) return;
  if (groups.min() == 0) groups.set_min(groups.count());
  if (groups.max() == 0) groups.set_max(groups.count());
}

std::string FaultOf(const v1::GroupKind& kind, const v1::JobSpec& job) {
  if (std::string fault = FaultOf("groups.count", "count", kind.count()); !fault.empty()) return fault;
  if (std::string fault = FaultOf("groups.ranks", "ranks", kind.ranks()); !fault.empty()) return fault;
  KeyValue site;
  site.text = kind.site();
  if (const absl::Status status = CheckKeyValue(*FindJobKey("groups.site"), site); !status.ok()) {
    return absl::StrCat("site: ", status.message());
  }
  if (std::string fault = GpusFaultOf(kind, job); !fault.empty()) return fault;
  if (std::string fault = LimitsFaultOf(kind, job); !fault.empty()) return fault;
  if (!HasCommand(job)) return FaultOf("train.batch_size", "batch_size", kind.batch_size());
  return kind.batch_size() == 0 ? ""
                                : "batch_size: does not go with command, which has a batch size of its own: remove it";
}

std::string CountText(uint64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

template <typename Kinds>
const v1::GroupKind& FewestRanksOf(const Kinds& kinds) {
  const auto fewer = [](const v1::GroupKind& a, const v1::GroupKind& b) { return a.ranks() < b.ranks(); };
  return *std::min_element(kinds.begin(), kinds.end(), fewer);
}

JobProblem Problem(std::string message) { return {kGroups, std::move(message), {kGroups}}; }

}  // namespace

void FillKinds(v1::JobSpec& job) {
  v1::GroupsSpec& groups = *job.mutable_groups();
  if (!HasKinds(job)) return FillLimits(groups);
  uint64_t count = 0;
  uint32_t most = 0;
  for (v1::GroupKind& kind : *groups.mutable_kinds()) {
    if (kind.count() == 0) kind.set_count(PresetOf("groups.count"));
    if (kind.ranks() == 0) kind.set_ranks(PresetOf("groups.ranks"));
    if (kind.batch_size() == 0) kind.set_batch_size(job.train().batch_size());
    FillLimits(kind);
    count += kind.count();
    most = std::max(most, kind.ranks());
  }
  groups.set_count(static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX)));
  groups.set_ranks(most);
}

std::vector<JobProblem> CheckKinds(const v1::JobSpec& job) {
  if (!HasKinds(job)) return {};
  const v1::GroupsSpec& groups = job.groups();
  if (groups.kinds_size() > kKindsMax) {
    return {Problem(absl::StrCat("has ", groups.kinds_size(), " kinds of groups; must be at most ", kKindsMax))};
  }
  std::vector<JobProblem> problems;
  for (int i = 0; i < groups.kinds_size(); ++i) {
    const std::string fault = FaultOf(groups.kinds(i), job);
    if (!fault.empty()) problems.push_back(Problem(absl::StrCat("kind ", i + 1, ": ", fault)));
  }
  if (!groups.site().empty()) {
    problems.push_back(Problem(
        absl::StrCat("site ", Quoted(groups.site()), " does not go with a list of kinds: each kind has its own")));
  }
  if (groups.min() > 0 || groups.max() > 0) {
    problems.push_back(Problem("min and max do not go with a list of kinds: each kind has its own"));
  }
  if (groups.gpus_per_rank() > 0) {
    problems.push_back(Problem("gpus_per_rank does not go with a list of kinds: each kind has its own"));
  }
  if (!problems.empty()) return problems;
  // The range of groups.count bounds the number of groups. It is checked with the other keys.
  uint64_t ranks = 0, most = 0, least = 0;
  for (const v1::GroupKind& kind : groups.kinds()) {
    most += HasLimits(kind) ? kind.max() : kind.count();
    least += HasLimits(kind) ? kind.min() : kind.count();
    ranks += uint64_t{HasLimits(kind) ? kind.max() : kind.count()} * kind.ranks();
  }
  if (ranks > kJobRanksMax) {
    problems.push_back(
        Problem(absl::StrCat("all groups together have ", ranks, " ranks; must be at most ", kJobRanksMax)));
  } else if (const auto limit = static_cast<uint64_t>(FindJobKey("groups.max")->range.max);
             most > limit && groups.count() <= limit) {
    problems.push_back(Problem(absl::StrCat("all kinds together may get ", most, " groups; must be at most ", limit)));
  } else if (job.averaging().quorum() > least && job.averaging().quorum() <= groups.count()) {
    problems.push_back(Problem(absl::StrCat("averaging.quorum is ", job.averaging().quorum(),
                                            ", and all kinds together may get only ", least, " groups: make it less")));
  }
  return problems;
}

std::vector<v1::GroupKind> KindsOf(const v1::JobSpec& job) {
  if (HasKinds(job)) return {job.groups().kinds().begin(), job.groups().kinds().end()};
  v1::GroupKind all;
  all.set_count(job.groups().count());
  all.set_ranks(job.groups().ranks());
  all.set_site(job.groups().site());
  all.set_batch_size(job.train().batch_size());
  all.set_move_stragglers(job.groups().move_stragglers());
  all.set_min(job.groups().min());
  all.set_max(job.groups().max());
  all.set_gpus_per_rank(job.groups().gpus_per_rank());
  return {all};
}

v1::GroupKind KindOf(const v1::JobSpec& job, uint32_t group) {
  if (!HasKinds(job)) return KindsOf(job).front();
  // The coordinator asks this for each waiting group, so only the kind that is returned is copied.
  return job.groups().kinds(static_cast<int>(KindIndexOf(job, group)));
}

size_t KindIndexOf(const v1::JobSpec& job, uint32_t group) {
  const auto& kinds = job.groups().kinds();
  if (kinds.empty()) return 0;
  for (int i = 0; i < kinds.size(); ++i) {
    if (group < kinds[i].count()) return static_cast<size_t>(i);
    group -= kinds[i].count();
  }
  const auto fewer = [](const v1::GroupKind& a, const v1::GroupKind& b) { return a.ranks() < b.ranks(); };
  return static_cast<size_t>(std::min_element(kinds.begin(), kinds.end(), fewer) - kinds.begin());
}

uint64_t AllRanksOf(const v1::JobSpec& job) {
  uint64_t ranks = 0;
  for (const v1::GroupKind& kind : KindsOf(job)) ranks += uint64_t{kind.count()} * kind.ranks();
  return ranks;
}

uint64_t RanksBefore(const v1::JobSpec& job, uint32_t group) {
  uint64_t ranks = 0;
  for (const v1::GroupKind& kind : KindsOf(job)) {
    const uint32_t before = std::min(group, kind.count());
    ranks += uint64_t{before} * kind.ranks();
    group -= before;
  }
  return ranks;
}

uint32_t FewestRanks(const v1::JobSpec& job) { return FewestRanksOf(KindsOf(job)).ranks(); }

std::vector<uint64_t> SamplesOfGroups(const v1::JobSpec& job) {
  std::vector<uint64_t> samples;
  for (const v1::GroupKind& kind : KindsOf(job)) {
    samples.insert(samples.end(), kind.count(), uint64_t{kind.ranks()} * std::max<uint32_t>(kind.batch_size(), 1));
  }
  return samples;
}

std::string GroupsText(const v1::JobSpec& job) {
  std::vector<std::string> texts;
  for (const v1::GroupKind& kind : KindsOf(job)) {
    std::string text = absl::StrCat(CountText(kind.count(), "group"), " x ", CountText(kind.ranks(), "rank"));
    if (HasKinds(job) && !kind.site().empty()) absl::StrAppend(&text, " at ", kind.site());
    if (kind.batch_size() != job.train().batch_size()) absl::StrAppend(&text, " (batch ", kind.batch_size(), ")");
    texts.push_back(std::move(text));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace hooke
