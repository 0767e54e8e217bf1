// ClusterState: jobs whose number of groups follows the room (groups.min and groups.max of a job). Each placement asks
// for room for further groups, too. They come last in the queue, so they take nothing from anybody.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/group_kinds.h"
#include "job/job_check.h"
#include "job/job_defaults.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/next_generation.h"

namespace hooke {
namespace {

// A job asks for room for at most so many further groups of a kind at once.
constexpr uint32_t kProbesMax = 64;

void SetCount(v1::GroupsSpec& groups, size_t kind, uint32_t count) {
  if (groups.kinds().empty()) return groups.set_count(count);
  v1::GroupKind& changed = *groups.mutable_kinds(static_cast<int>(kind));
  groups.set_count(groups.count() - changed.count() + count);
  changed.set_count(count);
}

}  // namespace

std::vector<ClusterState::Resized> ClusterState::ResizedJobs(const std::vector<Job*>& jobs) {
  std::vector<Resized> resized;
  for (Job* job : jobs) {
    if (!TallyOf(*job).has_limits) continue;
    const JobRecord& record = job->record;
    Resized& one = resized.emplace_back();
    one.job = job;
    one.seen.changed_at = job->resized_at;
    one.seen.is_steady = record.state == v1::JOB_STATE_RUNNING && !record.generations.wanted.has_value();
    one.seen.has_started = !record.generations.earlier.empty();
    one.seen.ends_at = -absl::InfiniteDuration();
    const std::vector<v1::GroupKind> kinds = KindsOf(record.spec);
    for (const v1::GroupKind& kind : kinds) {
      one.seen.kinds.push_back({kind.site(), kind.count(), kind.min(), kind.max()});
    }
    job->watch.resize(one.seen.kinds.size());
    for (const GroupRecord& group : record.groups) {
      one.seen.has_started = one.seen.has_started || group.incarnation > 0;
      if (group.state == v1::GROUP_STATE_WAITING) continue;
      if (group.state != v1::GROUP_STATE_RUNNING || group.task != v1::GroupStart::TRAIN) one.seen.is_steady = false;
      if (IsPlaced(group.state)) ++one.seen.kinds[KindIndexOf(record.spec, group.group)].placed;
      const auto ends_at = EndsAt(*job, {record.job_id, group.group, group.incarnation});
      if (!ends_at.has_value()) one.seen.ends_at.reset();
      if (one.seen.ends_at.has_value()) one.seen.ends_at = std::max(*one.seen.ends_at, *ends_at);
    }
    if (!one.seen.is_steady) continue;
    for (size_t kind = 0; kind < one.seen.kinds.size(); ++kind) {
      const KindSeen& seen = one.seen.kinds[kind];
      for (uint32_t i = seen.count; i < std::min(seen.max, seen.count + kProbesMax); ++i) {
        WaitingGroup probe = WaitingGroupOf(*job, 0);
        probe.group = i;
        probe.ranks = kinds[kind].ranks();
        probe.site = kinds[kind].site();
        probe.unwanted.clear();
        one.probes.emplace_back(kind, std::move(probe));
      }
    }
  }
  return resized;
}

std::set<const ClusterState::Job*> ClusterState::ResizeJobs(std::vector<Resized>& resized,
                                                            const std::vector<const WaitingGroup*>& queue,
                                                            const std::vector<Placement>& placements, Instant now) {
  std::set<const Job*> changing;
  if (resized.empty()) return changing;
  std::map<absl::string_view, Resized*> by_job;
  for (Resized& one : resized) by_job[one.job->record.job_id] = &one;
  std::set<std::string> lacking;  // The sites of groups that lack room; "": of those that may run at any.
  for (size_t i = 0; i < queue.size(); ++i) {
    if (placements[i].lacks_slots) lacking.insert(queue[i]->site);
    const auto found = by_job.find(queue[i]->job_id);
    if (found != by_job.end()) NoteWaiting(*found->second, queue[i]->group, placements[i]);
  }
  size_t next = queue.size();
  for (Resized& one : resized) {
    for (const auto& [kind, probe] : one.probes) {
      const bool others_wait =
          lacking.count("") > 0 || lacking.count(probe.site) > 0 || (probe.site.empty() && !lacking.empty());
      if (!placements[next++].parts.empty() && !others_wait) ++one.seen.kinds[kind].fits;
    }
    if (ResizeIfDue(one, now)) changing.insert(one.job);
  }
  return changing;
}

void ClusterState::NoteWaiting(Resized& resized, uint32_t group, const Placement& placement) {
  JobSeen& seen = resized.seen;
  KindSeen& kind = seen.kinds[KindIndexOf(resized.job->record.spec, group)];
  if (placement.lacks_slots) {
    ++kind.lacking;
  } else {
    // It starts now, or waits for something else than room.
    seen.is_steady = false;
    kind.placed += placement.parts.empty() ? 0 : 1;
  }
}

bool ClusterState::ResizeIfDue(Resized& resized, Instant now) {
  Job& job = *resized.job;
  JobRecord& record = job.record;
  if (HasEnded(record.state) || record.generations.wanted.has_value()) return false;
  const std::vector<Resize> changes = NextCounts(resized.seen, absl::MakeSpan(job.watch), now.steady, options_.resize);
  if (changes.empty()) return false;
  v1::GroupsSpec groups = record.spec.groups();
  for (const Resize& change : changes) SetCount(groups, change.kind, change.count);
  const bool possible = CheckJob(WithGroups(record.spec, groups)).empty() && CheckDataSufficesFor(job, groups).ok();
  if (!possible) {
    // The data are too few for more groups. They are asked again after a while.
    for (KindWatch& watch : job.watch) watch.room_since.reset();
    return false;
  }
  if (resized.seen.has_started) job.resized_at = now.steady;
  for (const Resize& change : changes) Notice(job, change.reason, now);
  ChangeGroups(job, groups, now);
  PlaceSoon();
  return true;
}

}  // namespace hooke
