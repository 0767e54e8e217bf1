// ClusterState: running groups that leave because a job of higher priority needs their slots.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/scheduling/preemption.h"

namespace hooke {

void ClusterState::Preempt(const std::vector<HinderedGroup>& hindered, Instant now) {
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
  for (const Eviction& eviction : ChooseEvictions(hindered, WorkersForEvictions(now), running)) {
    const auto& [job, group] = groups[eviction.running];
    const HinderedGroup& for_whom = hindered[eviction.waiting];
    LiveGroup& live = job->live[group];
    live.leaves = absl::StrCat("made room for ", for_whom.group.job_id, " of priority ", for_whom.priority);
    live.leaves_for = for_whom.group.job_id;
    live.made_room = live.leaves;
    EstimateChanged(job->record.groups[group]);
    Log(*job, absl::StrCat("group ", group, " leaves, and goes on later: ", live.leaves), now);
    StopParts(*job, job->record.groups[group], live.leaves, StopHow::kLeave);
  }
}

// Spares a look at all groups and workers when nobody would be asked, as is the case most of the time.
bool ClusterState::AnyMayLeaveFor(uint32_t priority) const {
  for (const auto& [number, job] : jobs_) {
    const v1::JobSpec& spec = job.record.spec;
    if (HasEnded(job.record.state) || !spec.preemptible() || spec.priority() >= priority) continue;
    for (const GroupRecord& group : job.record.groups) {
      if (IsPlaced(group.state) && job.live[group.group].leaves.empty()) return true;
    }
  }
  return false;
}

// Slots of groups that are being stopped count as free: these groups end soon anyway.
std::vector<FreeWorker> ClusterState::WorkersForEvictions(Instant now) const {
  std::vector<FreeWorker> workers;
  workers.reserve(workers_.size());
  // A hash table, because a large cluster has tens of thousands of occupants.
  absl::flat_hash_map<absl::string_view, const JobRecord*> jobs;
  jobs.reserve(jobs_.size());
  for (const auto& [number, job] : jobs_) jobs[job.record.job_id] = &job.record;
  for (const auto& [name, worker] : workers_) {
    if (!IsAlive(worker, now)) continue;
    uint64_t used = 0;
    for (const auto& [key, ranks] : worker.occupants) {
      const auto found = jobs.find(key.job_id);
      const JobRecord* job = found == jobs.end() ? nullptr : found->second;
      const bool stays = job != nullptr && !HasEnded(job->state) && key.group < job->groups.size() &&
                         job->groups[key.group].incarnation == key.incarnation &&
                         IsPlaced(job->groups[key.group].state);
      if (stays) used += ranks;
    }
    FreeWorker& shown = workers.emplace_back(WholeWorker(worker));
    shown.free = used >= worker.slots ? 0 : static_cast<uint32_t>(worker.slots - used);
    shown.drained = !worker.gets_groups();
  }
  return workers;
}

}  // namespace hooke
