// ClusterState: running groups that leave because a job of higher priority needs their slots.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/tally.h"
#include "server/scheduling/preemption.h"

namespace hooke {
namespace {

// Returns whether a group runs that may be told to leave for one of this priority, wherever it runs. Most of the time
// none does, and then nobody has to look at all groups and workers.
bool AnyMayLeaveFor(uint32_t priority, const JobTable& jobs) {
  for (const auto& [number, job] : jobs) {
    const v1::JobSpec& spec = job.record.spec;
    if (HasEnded(job.record.state) || !spec.preemptible() || spec.priority() >= priority) continue;
    for (const GroupRecord& group : job.record.groups) {
      if (IsPlaced(group.state) && job.live[group.group].leaves.empty()) return true;
    }
  }
  return false;
}

// Returns the live workers. The slots of groups that are being stopped count as free: these groups end soon anyway.
std::vector<FreeWorker> WorkersForEvictions(const WorkerTable& workers, const JobTable& jobs, Instant now) {
  std::vector<FreeWorker> shown_workers;
  shown_workers.reserve(workers.size());
  // A hash table, because a large cluster has tens of thousands of occupants.
  absl::flat_hash_map<absl::string_view, const JobRecord*> by_id;
  by_id.reserve(jobs.size());
  for (const auto& [number, job] : jobs) by_id[job.record.job_id] = &job.record;
  for (const auto& [name, worker] : workers) {
    if (!workers.IsAlive(worker, now)) continue;
    uint64_t used = 0;
    for (const auto& [key, ranks] : worker.occupants) {
      const auto found = by_id.find(key.job_id);
      const JobRecord* job = found == by_id.end() ? nullptr : found->second;
      const bool stays = job != nullptr && !HasEnded(job->state) && key.group < job->groups.size() &&
                         job->groups[key.group].incarnation == key.incarnation &&
                         IsPlaced(job->groups[key.group].state);
      if (stays) used += ranks;
    }
    FreeWorker& shown = shown_workers.emplace_back(WholeWorker(worker));
    shown.free = used >= worker.slots ? 0 : static_cast<uint32_t>(worker.slots - used);
    shown.drained = !worker.gets_groups();
  }
  return shown_workers;
}

}  // namespace

void ClusterState::Preempt(const std::vector<std::pair<const WaitingGroup*, const Job*>>& waiting, Instant now) {
  uint32_t highest = 0;
  for (const auto& [group, job] : waiting) highest = std::max(highest, job->record.spec.priority());
  if (!AnyMayLeaveFor(highest, jobs_)) return;
  std::vector<HinderedGroup> hindered;
  hindered.reserve(waiting.size());
  for (const auto& [group, job] : waiting) hindered.push_back({*group, job->record.spec.priority()});
  std::vector<RunningGroup> running;
  std::vector<std::pair<Job*, uint32_t>> groups;  // groups[i] is the group that running[i] describes.
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    const uint32_t priority = job.record.spec.priority();
    for (const GroupRecord& group : job.record.groups) {
      if (!IsPlaced(group.state)) continue;
      RunningGroup& one = running.emplace_back(RunningGroup{number, priority});
      one.leaving = !job.live[group.group].leaves.empty();
      one.preemptible = job.record.spec.preemptible() && group.task == v1::GroupStart::TRAIN;
      for (const GroupPart& part : group.parts) one.parts.push_back({part.worker, part.ranks});
      groups.emplace_back(&job, group.group);
    }
  }
  for (const Eviction& eviction : ChooseEvictions(hindered, WorkersForEvictions(workers_, jobs_, now), running)) {
    const auto& [job, group] = groups[eviction.running];
    const HinderedGroup& for_whom = hindered[eviction.waiting];
    LiveGroup& live = job->live[group];
    live.leaves = absl::StrCat("made room for ", for_whom.group.job_id, " of priority ", for_whom.priority);
    live.leaves_for = for_whom.group.job_id;
    live.made_room = live.leaves;
    rooms_.Changed(job->record.groups[group]);
    effects_.Log(job->record.job_id, absl::StrCat("group ", group, " leaves, and goes on later: ", live.leaves), now);
    StopParts(*job, job->record.groups[group], live.leaves, StopHow::kLeave);
  }
}

}  // namespace hooke
