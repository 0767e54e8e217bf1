// ClusterState: workers that users drain, and groups that leave them.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/cluster_view.h"
#include "server/cluster/shortened.h"

namespace hooke {

absl::StatusOr<v1::NodeStatus> ClusterState::Drain(const std::string& name, v1::Drain drain, Instant now) {
  if (drain != v1::DRAIN_NONE && drain != v1::DRAIN_FINISH && drain != v1::DRAIN_NOW) {
    return absl::InvalidArgumentError(absl::StrCat("a drain is NONE, FINISH or NOW, and not ", drain));
  }
  Worker* found = workers_.Find(name);
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat("no worker ", Shortened(name, 80), ": `hooke nodes` lists them"));
  }
  Worker& worker = *found;
  if (std::exchange(worker.drain, drain) != drain) {
    rooms_.Changed(worker.name);
    workers_.Expect(worker);
    effects_.drains[name] = drain;
    const char* what = drain == v1::DRAIN_NONE     ? "it gets groups again"
                       : drain == v1::DRAIN_FINISH ? "it gets no more groups"
                                                   : "it gets no more groups, and those that it runs leave";
    effects_.LogDaemon(absl::StrCat("worker ", name, ": ", what, ", as a user asked"), now);
  }
  AskToLeave(worker, now);
  Place(now);
  return StatusOf(worker, workers_, options_.avoid, now);
}

void ClusterState::AskToLeave(const Worker& worker, Instant now) {
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    for (GroupRecord& group : job.record.groups) AskToLeave(worker, job, group, now);
  }
}

void ClusterState::AskToLeave(const Worker& worker, Job& job, const GroupRecord& group, Instant now) {
  const GroupPart* part = PartOn(group, worker.name);
  if (part == nullptr || part->ended || !IsPlaced(group.state)) return;
  LiveGroup& live = job.live[group.group];
  const bool told = !live.leaves.empty();
  if (worker.ends) live.leaves = absl::StrCat("worker ", worker.name, " ends");
  if (worker.drain == v1::DRAIN_NOW) live.leaves = absl::StrCat("worker ", worker.name, " is drained");
  if (job.record.generations.wanted.has_value()) live.leaves = kLeavesToScale;
  if (live.leaves.empty()) return;
  rooms_.Changed(group);
  // Sent again after a reconnect, because the worker may not have got it.
  StopParts(job, group, live.leaves, StopHow::kLeave);
  if (!told) effects_.Log(job.record.job_id, absl::StrCat("group ", group.group, " leaves: ", live.leaves), now);
}

void ClusterState::Leave(Job& job, GroupRecord& group, Instant now) {
  LiveGroup& live = job.live[group.group];
  group.state = v1::GROUP_STATE_WAITING;
  const bool starts_again = !job.record.generations.wanted.has_value();
  group.reason =
      absl::StrCat(live.leaves, starts_again ? absl::StrCat("; starts again as start ", group.incarnation + 1) : "");
  live.retry_at = now.steady;
  PlaceSoon();
  live.silences.clear();
  rooms_.Changed(group);
  live.outcome_so_far.reset();
  if (group.parts.size() > 1) StopParts(job, group, live.leaves);
  const bool any_runs = std::any_of(job.record.groups.begin(), job.record.groups.end(),
                                    [](const GroupRecord& other) { return IsPlaced(other.state); });
  // A job that was only moved starts again at once, and one that made room waits in the queue.
  if (!live.made_room.empty() && !any_runs) {
    job.record.state = v1::JOB_STATE_QUEUED;
    job.record.reason = live.made_room;
  }
  Notice(job, absl::StrCat("group ", group.group, " at step ", live.progress.step(), ": ", group.reason), now);
  Store(job);
}

}  // namespace hooke
