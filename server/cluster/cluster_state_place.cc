// ClusterState: the placement of waiting groups, and what they wait for.

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/generation_wait.h"
#include "server/cluster/next_generation.h"
#include "server/cluster/tally.h"
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
  std::vector<const WaitingGroup*> queue;
  std::deque<WaitingGroup> evaluations;
  place_at_ = now.steady + kPlaceAgain;
  ChargeOwners(now);
  const std::vector<Job*> jobs = UnfinishedInOrder();
  ServerChoices choices;
  for (Job* job : jobs) {
    BeginGenerationIfDue(*job, now);
    TallyOf(*job);
    if (job->tally.waiting.empty()) continue;
    const std::string not_yet = WhyNotYet(*job, choices, now);
    const std::string changes = WhyChangeWaits(*job);
    for (WaitingGroup& group : job->tally.waiting) {
      int64_t& since = job->live[group.group].waits_since_us;
      if (since == 0) since = absl::ToUnixMicros(now.wall);
      waiting.push_back({job, group.group, not_yet});
      if (!not_yet.empty()) continue;
      const absl::Duration retry_at = job->live[group.group].retry_at;
      if (retry_at > now.steady) place_at_ = std::min(place_at_, retry_at);
      // While other groups of the job leave, those that have left keep their slots for the next generation.
      group.due = retry_at <= now.steady && changes.empty();
      if (!group.due) group.wait_why = changes.empty() ? job->record.groups[group.group].reason : changes;
      queue.push_back(&group);
      if (job->record.state != v1::JOB_STATE_EVALUATING) continue;
      queue.back() = &evaluations.emplace_back(group);
      evaluations.back().site = EvaluationSite(*job, sites_, workers_, now);
    }
  }
  std::vector<Resized> resized = ResizedJobs(jobs);
  std::vector<const WaitingGroup*> queue_and_probes = queue;
  for (const Resized& one : resized) {
    for (const auto& [kind, probe] : one.probes) queue_and_probes.push_back(&probe);
  }
  std::vector<Placement> placements;
  if (!queue_and_probes.empty()) {
    placements = PlaceGroups(queue_and_probes, RefreshRooms(now), now, QuotasOf(jobs));
  }
  const std::map<const Job*, Barred> barred = ResizeJobs(resized, queue, placements, now);
  size_t next = 0;
  std::vector<std::pair<const WaitingGroup*, const Job*>> hindered;
  for (WaitingInQueue& one : waiting) {
    if (!one.reason.empty()) continue;
    Placement& placement = placements[next];
    const WaitingGroup& group = *queue[next++];
    if (const auto found = barred.find(one.job); found != barred.end()) {
      // Groups of this job that could start keep their slots. Groups of other jobs leave only for the room that is
      // still missing.
      const bool takes_room = placement.lacks_slots || !placement.parts.empty();
      if (found->second.wants_room && takes_room) hindered.emplace_back(&group, one.job);
      one.reason = found->second.why;
      continue;
    }
    if (placement.lacks_slots) hindered.emplace_back(&group, one.job);
    if (placement.parts.empty()) {
      one.reason = std::move(placement.reason);
      if (group.due) absl::StrAppend(&one.reason, sites_.TextOf(one.job->record, group.site, now));
    } else {
      Start(*one.job, one.job->record.groups[one.group], placement, now);
    }
  }
  Preempt(hindered, now);
  ShowQueue(waiting);
}

Rooms& ClusterState::RefreshRooms(Instant now) {
  Rooms& rooms = rooms_.Refresh(workers_, jobs_, now);
  if (options_.compare_kept) rooms_.CheckAllKept(workers_, jobs_, now);
  return rooms;
}

std::string ClusterState::WhyNotYet(const Job& job, ServerChoices& choices, Instant now) const {
  if (AwaitsSilentServer(job, servers_)) return NotClosedText(job, servers_);
  if (!job.record.servers.empty()) return "";
  const uint32_t servers = job.record.spec.averaging().servers();
  auto choice = choices.find(servers);
  if (choice == choices.end()) choice = choices.emplace(servers, servers_.Choose(servers, now)).first;
  return choice->second.servers.empty() ? choice->second.reason : "";
}

std::string ClusterState::WhyChangeWaits(const Job& job) const {
  if (!job.record.generations.wanted.has_value()) return "";
  return GenerationIsEnding(job.record) ? NotClosedText(job, servers_) : kOthersLeave;
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
    // If no group of a job runs, the job's reason is that of its first waiting group.
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
