#include "server/cluster/next_generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/job_check.h"
#include "job/job_defaults.h"
#include "job/job_state.h"

namespace hooke {
namespace {

uint64_t StepSamples(const v1::JobSpec& job) {
  const std::vector<uint64_t> samples = SamplesOfGroups(job);
  return std::accumulate(samples.begin(), samples.end(), uint64_t{0});
}

std::string SitesText(const v1::JobSpec& job) {
  std::string text;
  for (const v1::GroupKind& kind : KindsOf(job)) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", kind.site().empty() ? "any site" : kind.site());
  }
  return text;
}

// Returns why a user may not choose this number of the kind's groups. Empty: the user may.
std::string LimitsFault(const v1::GroupKind& kind, uint32_t count) {
  if (!HasLimits(kind) || (count >= kind.min() && count <= kind.max())) return "";
  return absl::StrCat(count, " groups; the job file allows ", kind.min(), " to ", kind.max(),
                      ", by the keys min and max of groups");
}

// Returns for each group of `job` its number before, or nullopt if it is new.
std::vector<std::optional<uint32_t>> NumbersBefore(const v1::JobSpec& before, const v1::JobSpec& job) {
  std::vector<std::optional<uint32_t>> numbers;
  const std::vector<v1::GroupKind> old_kinds = KindsOf(before);
  const std::vector<v1::GroupKind> kinds = KindsOf(job);
  uint32_t first = 0;
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    for (uint32_t i = 0; i < kinds[kind].count(); ++i) {
      numbers.push_back(i < old_kinds[kind].count() ? std::optional<uint32_t>(first + i) : std::nullopt);
    }
    first += old_kinds[kind].count();
  }
  return numbers;
}

v1::Generation EndedGeneration(const JobRecord& job) {
  v1::Generation generation;
  generation.set_first_step(job.generations.first_step);
  for (const GroupRecord& group : job.groups) {
    const v1::GroupKind kind = KindOf(job.spec, group.group);
    v1::GenerationGroup* ended = generation.add_groups();
    ended->set_ranks(kind.ranks());
    if (!HasCommand(job.spec)) ended->set_batch_size(kind.batch_size());
    ended->set_last_step(group.exchanged_step);
  }
  return generation;
}

// Returns how far the group had come at one server.
uint64_t StepAt(const v1::ClosedGeneration& server, uint32_t group, const Generations& generations) {
  const uint32_t first_incarnation = std::max<uint32_t>(generations.first_incarnation, 1);
  for (const v1::ClosedGroup& closed : server.groups()) {
    if (closed.group() != group || closed.incarnation() < first_incarnation) continue;
    return std::max(closed.step(), generations.first_step);
  }
  return generations.first_step;
}

}  // namespace

absl::StatusOr<v1::GroupsSpec> ScaledGroups(const v1::JobSpec& job, const std::string& site, uint32_t count) {
  if (job.averaging().rule() == v1::AveragingSpec::NONE) {
    return absl::FailedPreconditionError(
        "under averaging.rule `none` each group trains alone, so the work of groups that go would be lost");
  }
  if (count == 0) return absl::InvalidArgumentError("0 groups; at least 1 is needed. `hooke cancel` ends a job");
  v1::GroupsSpec groups = job.groups();
  if (!HasKinds(job)) {
    if (!site.empty() && site != groups.site()) {
      return absl::NotFoundError(
          absl::StrCat("the job has no groups that run only at site ", site, "; they run at: ", SitesText(job)));
    }
    if (std::string fault = LimitsFault(KindsOf(job).front(), count); !fault.empty()) {
      return absl::InvalidArgumentError(fault);
    }
    groups.set_count(count);
  } else {
    v1::GroupKind* found = nullptr;
    for (v1::GroupKind& kind : *groups.mutable_kinds()) {
      if (!site.empty() && kind.site() != site) continue;
      if (found != nullptr) {
        return absl::NotFoundError(
            site.empty() ? absl::StrCat("the job has several kinds of groups; name the site of one: ", SitesText(job))
                         : absl::StrCat("the job has several kinds of groups at site ", site,
                                        ", and a number alone does not say of which: submit the job anew"));
      }
      found = &kind;
    }
    if (found == nullptr) {
      return absl::NotFoundError(absl::StrCat("the job has no groups at site ", site, "; it has: ", SitesText(job)));
    }
    if (std::string fault = LimitsFault(*found, count); !fault.empty()) return absl::InvalidArgumentError(fault);
    groups.set_count(groups.count() - found->count() + count);
    found->set_count(count);
  }
  const std::vector<JobProblem> problems = CheckJob(WithGroups(job, groups));
  if (problems.empty()) return groups;
  return absl::InvalidArgumentError(
      absl::StrCat(problems.front().key, " with ", count, " groups: ", problems.front().message));
}

absl::Status CheckDataSuffices(const v1::JobSpec& job, const v1::RankProgress& progress, const v1::GroupsSpec& groups) {
  const double epochs_left = job.train().epochs() - progress.epoch();
  if (HasCommand(job) || progress.steps_total() <= progress.step() || !(epochs_left > 0)) return absl::OkStatus();
  const double steps_per_epoch = static_cast<double>(progress.steps_total() - progress.step()) / epochs_left;
  const double epoch = std::round(steps_per_epoch) * static_cast<double>(StepSamples(job));
  const uint64_t wanted = StepSamples(WithGroups(job, groups));
  if (static_cast<double>(wanted) <= epoch) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("one step of all these groups would take ", wanted,
                                                    " samples, and an epoch has about ", epoch, "; take fewer groups"));
}

bool GenerationIsEnding(const JobRecord& job) {
  if (!job.generations.wanted.has_value() || HasEnded(job.state)) return false;
  if (job.groups.back().task == v1::GroupStart::EVALUATE) return false;
  return std::none_of(job.groups.begin(), job.groups.end(),
                      [](const GroupRecord& group) { return IsPlaced(group.state); });
}

uint64_t RestartsOf(const JobRecord& job) {
  const uint32_t first = std::max<uint32_t>(job.generations.first_incarnation, 1);
  uint64_t restarts = 0;
  for (const GroupRecord& group : job.groups) {
    if (group.task == v1::GroupStart::EVALUATE || group.incarnation < first) continue;
    restarts += group.incarnation - first;
  }
  return restarts;
}

uint32_t NextFirstIncarnation(const JobRecord& job) {
  uint32_t starts = 0;
  for (const GroupRecord& group : job.groups) starts = std::max(starts, group.incarnation);
  return starts + 1;
}

std::vector<uint64_t> LastSteps(const JobRecord& job, absl::Span<const v1::ClosedGeneration> answers) {
  std::vector<uint64_t> steps;
  for (const GroupRecord& group : job.groups) {
    std::optional<uint64_t> told;
    for (const v1::ClosedGeneration& server : answers) {
      if (server.groups().empty()) continue;
      const uint64_t step = StepAt(server, group.group, job.generations);
      told = std::min(told.value_or(step), step);
    }
    const uint64_t reported = std::max(group.exchanged_step, job.generations.first_step);
    const bool finished = group.state == v1::GROUP_STATE_FINISHED;
    steps.push_back(finished ? std::max(told.value_or(0), reported) : told.value_or(reported));
  }
  return steps;
}

void BeginGeneration(JobRecord& job, absl::Span<const v1::ClosedGeneration> answers) {
  const v1::JobSpec spec = WithGroups(job.spec, *job.generations.wanted);
  job.generations.wanted.reset();
  const std::vector<uint64_t> last_steps = LastSteps(job, answers);
  for (size_t i = 0; i < job.groups.size(); ++i) job.groups[i].exchanged_step = last_steps[i];
  const uint32_t starts = NextFirstIncarnation(job) - 1;
  const uint64_t begun_at = job.generations.first_step;
  uint64_t first_step = begun_at;
  if (starts > 0) {
    v1::Generation ended = EndedGeneration(job);
    for (const v1::GenerationGroup& group : ended.groups()) first_step = std::max(first_step, group.last_step());
    job.generations.earlier.push_back(std::move(ended));
    job.generations.first_step = first_step;
    job.generations.first_incarnation = starts + 1;
  }
  std::vector<GroupRecord> groups;
  for (const std::optional<uint32_t>& before : NumbersBefore(job.spec, spec)) {
    GroupRecord& group = groups.emplace_back();
    group.group = static_cast<uint32_t>(groups.size() - 1);
    group.reason = "waits for a worker";
    group.incarnation = starts;
    group.best_step = group.exchanged_step = first_step;
    // Servers keep the states of ranks under the number of their group. A group that was new and has exchanged nothing
    // has none of its own.
    const bool has_states =
        before == group.group && !(job.groups[*before].is_new && job.groups[*before].exchanged_step <= begun_at);
    group.is_new = starts > 0 && !has_states;
  }
  job.groups = std::move(groups);
  job.spec = spec;
}

}  // namespace hooke
