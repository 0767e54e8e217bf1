// ClusterState: jobs whose number of groups follows the room (groups.min and groups.max of a job). Each placement asks
// for room for further groups, too. They come last in the queue, so they take nothing from anybody.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "job/group_kinds.h"
#include "job/job_check.h"
#include "job/job_defaults.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/generation_wait.h"
#include "server/cluster/next_generation.h"
#include "server/cluster/tally.h"
#include "server/scheduling/room.h"

namespace hooke {
namespace {

// The most groups of one kind for which a job asks for room in one placement, on top of those that it has.
constexpr uint32_t kProbesMax = 64;

// Why groups do not start now although there may be room for them.
constexpr char kBeginsWithFewer[] = "the job begins with fewer groups, because others of it have no room";
constexpr char kWaitsToBegin[] = "other groups of the job have no room; if that stays so, it soon begins with fewer";

void SetCount(v1::GroupsSpec& groups, size_t kind, uint32_t count) {
  if (groups.kinds().empty()) return groups.set_count(count);
  v1::GroupKind& changed = *groups.mutable_kinds(static_cast<int>(kind));
  groups.set_count(groups.count() - changed.count() + count);
  changed.set_count(count);
}

}  // namespace

std::vector<ClusterState::Resized> ClusterState::ResizedJobs(const std::vector<Job*>& jobs) {
  std::vector<Resized> resized;
  bool any_begins = false;
  for (Job* job : jobs) {
    if (!TallyOf(*job).has_limits) continue;
    Resized& one = resized.emplace_back(ResizedJob(*job));
    any_begins = any_begins || !one.seen.has_started;
    one.seen.is_steady = one.seen.is_steady && MayChange(*job);
    const std::vector<v1::GroupKind> kinds = KindsOf(job->record.spec);
    for (size_t i = 0; i < kinds.size(); ++i) {
      KindSeen& kind = one.seen.kinds[i];
      // Workers of a batch system come only for groups that wait. So there is never room for further ones.
      if (sites_.Has(kind.site)) kind.min = kind.max = 0;
      if (!one.seen.is_steady) continue;
      for (uint32_t count = kind.count; count < std::min(kind.max, kind.count + kProbesMax); ++count) {
        WaitingGroup probe = WaitingGroupOf(*job, 0);
        probe.group = count;
        probe.ranks = kinds[i].ranks();
        probe.site = kind.site;
        probe.gpus_per_rank = kinds[i].gpus_per_rank();
        probe.unwanted.clear();
        one.probes.emplace_back(i, std::move(probe));
      }
    }
  }
  if (!any_begins) return resized;
  std::set<absl::string_view> others_leave_for;
  for (const Job* job : jobs) {
    for (const GroupRecord& group : job->record.groups) {
      if (IsPlaced(group.state)) others_leave_for.insert(job->live[group.group].leaves_for);
    }
  }
  for (Resized& one : resized) one.seen.others_leave = others_leave_for.count(one.job->record.job_id) > 0;
  return resized;
}

ClusterState::Resized ClusterState::ResizedJob(Job& job) {
  const JobRecord& record = job.record;
  Resized one;
  one.job = &job;
  one.seen.changed_at = job.resized_at;
  one.seen.is_steady = record.state == v1::JOB_STATE_RUNNING && !record.generations.wanted.has_value();
  one.seen.has_started = !record.generations.earlier.empty();
  one.seen.ends_at = -absl::InfiniteDuration();
  for (const v1::GroupKind& kind : KindsOf(record.spec)) {
    one.seen.kinds.push_back({kind.site(), kind.count(), kind.min(), kind.max()});
  }
  job.watch.resize(one.seen.kinds.size());
  for (const GroupRecord& group : record.groups) {
    one.seen.has_started = one.seen.has_started || group.incarnation > 0;
    if (group.state == v1::GROUP_STATE_WAITING) continue;
    if (group.state != v1::GROUP_STATE_RUNNING || group.task != v1::GroupStart::TRAIN) one.seen.is_steady = false;
    if (IsPlaced(group.state)) ++one.seen.kinds[KindIndexOf(record.spec, group.group)].placed;
    const auto ends_at = EndsAt(job, {record.job_id, group.group, group.incarnation});
    if (!ends_at.has_value()) one.seen.ends_at.reset();
    if (one.seen.ends_at.has_value()) one.seen.ends_at = std::max(*one.seen.ends_at, *ends_at);
  }
  return one;
}

bool ClusterState::MayChange(const Job& job) const {
  for (const JobServer& shard : job.record.servers) {
    const Server* server = servers_.Find(KeyOf(shard));
    if (server == nullptr || !server->heard || server->silent || server->lost) return false;
  }
  for (const GroupRecord& group : job.record.groups) {
    if (!IsPlaced(group.state)) continue;
    if (!job.live[group.group].silences.empty()) return false;
    for (const GroupPart& part : group.parts) {
      const Worker* worker = workers_.Find(part.worker);
      if (worker == nullptr || worker->silent || !worker->gets_groups()) return false;
    }
  }
  return true;
}

std::map<const ClusterState::Job*, ClusterState::Barred> ClusterState::ResizeJobs(
    std::vector<Resized>& resized, const std::vector<const WaitingGroup*>& queue,
    const std::vector<Placement>& placements, Instant now) {
  std::map<const Job*, Barred> barred;
  if (resized.empty()) return barred;
  std::map<absl::string_view, Resized*> by_job;
  for (Resized& one : resized) by_job[one.job->record.job_id] = &one;
  // The groups that lack room. If the same workers suit several groups, only the first of these is in the map.
  std::map<std::tuple<absl::string_view, bool, uint32_t, absl::string_view>, const WaitingGroup*> lacking;
  for (size_t i = 0; i < queue.size(); ++i) {
    const WaitingGroup& group = *queue[i];
    const absl::string_view own = rooms_.rooms().HasOwn(group.job_id) ? group.job_id : absl::string_view();
    if (placements[i].lacks_slots) {
      lacking.try_emplace({group.site, group.command, group.gpus_per_rank, own}, &group);
    }
    const auto found = by_job.find(queue[i]->job_id);
    if (found != by_job.end()) NoteWaiting(*found->second, queue[i]->group, placements[i]);
  }
  size_t next = queue.size();
  for (Resized& one : resized) {
    for (const auto& [kind, probe] : one.probes) {
      const std::vector<PlacedPart>& parts = placements[next++].parts;
      // A group that lacks room could run there, and comes before a further group of this job.
      const bool others_wait = std::any_of(parts.begin(), parts.end(), [&](const PlacedPart& part) {
        const Room* room = rooms_.rooms().Find(part.worker);
        return room != nullptr && std::any_of(lacking.begin(), lacking.end(),
                                              [room](const auto& group) { return Suits(*group.second, room->worker); });
      });
      if (!parts.empty() && !others_wait) ++one.seen.kinds[kind].fits;
    }
    if (ResizeIfDue(one, now)) {
      barred[one.job] = {one.seen.has_started ? kOthersLeave : kBeginsWithFewer, false};
    } else if (WaitsToBegin(one.seen, one.job->watch, now.steady, options_.resize)) {
      barred[one.job] = {kWaitsToBegin, true};
    }
  }
  return barred;
}

void ClusterState::NoteWaiting(Resized& resized, uint32_t group, const Placement& placement) {
  JobSeen& seen = resized.seen;
  KindSeen& kind = seen.kinds[KindIndexOf(resized.job->record.spec, group)];
  if (placement.lacks_slots) {
    ++kind.lacking;
  } else {
    // The group starts now, or waits for something else than room.
    seen.is_steady = false;
    kind.placed += placement.parts.empty() ? 0 : 1;
  }
}

bool ClusterState::ResizeIfDue(Resized& resized, Instant now) {
  Job& job = *resized.job;
  JobRecord& record = job.record;
  if (HasEnded(record.state)) return false;
  if (record.generations.wanted.has_value()) {
    // The next generation's room is watched anew.
    for (KindWatch& watch : job.watch) watch.ForgetRoom();
    return false;
  }
  std::vector<Resize> changes = NextCounts(resized.seen, absl::MakeSpan(job.watch), now.steady, options_.resize);
  if (changes.empty()) return false;
  const auto groups_after = [&record](const std::vector<Resize>& of) {
    v1::GroupsSpec groups = record.spec.groups();
    for (const Resize& change : of) SetCount(groups, change.kind, change.count);
    return groups;
  };
  const auto possible = [&](const v1::GroupsSpec& groups) {
    return CheckJob(WithGroups(record.spec, groups)).empty() && CheckDataSufficesFor(job, groups).ok();
  };
  // A step of so many groups may need more samples than the data have.
  while (!possible(groups_after(changes))) {
    if (AddFewer(resized.seen, changes) && !changes.empty()) continue;
    // The job asks again when there has been room for a while.
    for (KindWatch& watch : job.watch) watch.room_since.reset();
    return false;
  }
  const v1::GroupsSpec groups = groups_after(changes);
  if (resized.seen.has_started) job.resized_at = now.steady;
  for (const Resize& change : changes) Notice(job, change.reason, now);
  ChangeGroups(job, groups, now);
  PlaceSoon();
  return true;
}

}  // namespace hooke
