// ClusterState: the placement of waiting groups, and what they wait for.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/next_generation.h"
#include "server/scheduling/pace.h"
#include "server/scheduling/placement.h"
#include "server/scheduling/queue_text.h"

namespace hooke {
namespace {

// Groups are placed when an event changes something. No event says that an estimate has changed, so groups are also
// placed again after this time.
constexpr absl::Duration kPlaceAgain = absl::Seconds(1);

}  // namespace

void ClusterState::Place(Instant now) {
  std::vector<WaitingInQueue> waiting;
  std::vector<WaitingGroup> queue;
  place_at_ = now.steady + kPlaceAgain;
  ChargeOwners(now);
  const std::vector<Job*> jobs = UnfinishedInOrder();
  for (Job* job : jobs) {
    BeginGenerationIfDue(*job, now);
    std::string not_yet;
    if (job->record.servers.empty()) {
      ServerChoice choice = ChooseServersFor(*job, now);
      if (choice.servers.empty()) not_yet = std::move(choice.reason);
    }
    if (job->record.generations.wanted.has_value()) {
      not_yet = GenerationEnds(job->record)
                    ? NotClosedText(*job)
                    : "the job's other groups leave first, because the number of groups changes";
    }
    for (const GroupRecord& group : job->record.groups) {
      if (group.state != v1::GROUP_STATE_WAITING) continue;
      waiting.push_back({job, group.group, not_yet});
      if (!not_yet.empty()) continue;
      const absl::Duration retry_at = job->live[group.group].retry_at;
      if (retry_at > now.steady) place_at_ = std::min(place_at_, retry_at);
      WaitingGroup& one = queue.emplace_back(WaitingGroupOf(*job, group.group));
      one.due = retry_at <= now.steady;
      one.wait_why = group.reason;
    }
  }
  if (waiting.empty()) return;
  std::vector<Placement> placements;
  if (!queue.empty()) placements = PlaceGroups(queue, WorkersFor(now), now.wall, QuotasOf(jobs));
  size_t next = 0;
  std::vector<HinderedGroup> hindered;
  for (WaitingInQueue& one : waiting) {
    if (!one.reason.empty()) continue;
    Placement& placement = placements[next];
    if (placement.lacks_slots) hindered.push_back({queue[next], one.job->record.spec.priority()});
    ++next;
    if (placement.parts.empty()) {
      one.reason = std::move(placement.reason);
      const bool due = one.job->live[one.group].retry_at <= now.steady;
      if (due) absl::StrAppend(&one.reason, SiteText(*one.job, one.group, now));
    } else {
      Start(*one.job, one.job->record.groups[one.group], placement, now);
    }
  }
  Preempt(hindered, now);
  ShowQueue(waiting);
}

WaitingGroup ClusterState::WaitingGroupOf(const Job& job, uint32_t group) {
  const v1::GroupKind kind = KindOf(job.record.spec, group);
  WaitingGroup waits = {job.record.job_id, group, kind.ranks(), kind.site()};
  waits.command = HasCommand(job.record.spec);
  waits.owner = job.record.spec.owner();
  waits.unwanted = job.live[group].unwanted;
  return waits;
}

std::vector<FreeWorker> ClusterState::WorkersFor(Instant now) const {
  std::vector<FreeWorker> workers;
  workers.reserve(workers_.size());
  // A hash table, because a large cluster has tens of thousands of occupants.
  absl::flat_hash_map<absl::string_view, const Job*> jobs;
  jobs.reserve(jobs_.size());
  for (const auto& [number, job] : jobs_) jobs[job.record.job_id] = &job;
  for (const auto& [name, worker] : workers_) {
    if (!IsAlive(worker, now)) continue;
    FreeWorker& shown = workers.emplace_back(WholeWorker(worker));
    uint64_t used = 0;
    shown.occupants.reserve(worker.occupants.size());
    for (const auto& [key, ranks] : worker.occupants) {
      used += ranks;
      // A worker may name any job. Only ids of our own are fit for texts.
      const auto job = jobs.find(key.job_id);
      const bool known = job != jobs.end();
      shown.occupants.push_back(
          {known ? key.job_id : "", ranks, known ? EndsIn(*job->second, key, now) : std::nullopt});
    }
    shown.free = used >= worker.slots ? 0 : static_cast<uint32_t>(worker.slots - used);
    shown.drained = !worker.gets_groups();
    shown.avoided = Avoid(worker.deaths, now.steady, options_.avoid).has_value();
  }
  return workers;
}

std::optional<absl::Duration> ClusterState::EndsIn(const Job& job, const GroupKey& key, Instant now) const {
  if (HasEnded(job.record.state) || key.group >= job.record.groups.size()) return std::nullopt;
  const GroupRecord& group = job.record.groups[key.group];
  const LiveGroup& live = job.live[key.group];
  const bool steady = group.state == v1::GROUP_STATE_RUNNING && group.task == v1::GroupStart::TRAIN &&
                      group.incarnation == key.incarnation && live.first_work.has_value() && live.silences.empty() &&
                      live.leaves.empty();
  if (!steady) return std::nullopt;
  return TimeLeft({live.first_work_step, live.progress.step(), live.progress.steps_total(),
                   live.last_work - *live.first_work, now.steady - live.last_work});
}

void ClusterState::ShowQueue(const std::vector<WaitingInQueue>& waiting) {
  const Job* last = nullptr;
  uint32_t position = 0;
  for (const WaitingInQueue& one : waiting) {
    JobRecord& job = one.job->record;
    GroupRecord& group = job.groups[one.group];
    if (group.state != v1::GROUP_STATE_WAITING) continue;
    const std::string& made_room = one.job->live[one.group].made_room;
    const std::string why = absl::StrCat(made_room, made_room.empty() ? "" : "; ", one.reason);
    bool changed = std::exchange(group.reason, why) != why;
    // The first group that waits speaks for a job of which no group runs.
    if (job.state == v1::JOB_STATE_QUEUED && one.job != last) {
      one.job->queue_position = ++position;
      const std::string reason = QueuedText(position, why);
      changed = std::exchange(job.reason, reason) != reason || changed;
    }
    last = one.job;
    if (changed) Changed(*one.job);
  }
}

}  // namespace hooke
