// ClusterState: groups that are slower than their peers.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "server/coordinator/cluster_state.h"
#include "server/scheduling/placement.h"
#include "server/scheduling/room.h"
#include "server/scheduling/straggler.h"

namespace hooke {
namespace {

std::string MillisecondsText(absl::Duration time) {
  return absl::StrFormat("%.3g ms", absl::ToDoubleMilliseconds(time));
}

}  // namespace

void ClusterState::NoteWork(Job& job, GroupRecord& group, const v1::RankProgress& progress, Instant now) {
  LiveGroup& live = job.live[group.group];
  const absl::Duration work = absl::Seconds(progress.compute_seconds() + progress.collective_seconds());
  if (!live.work.Note(now.steady, progress.step(), work, options_.straggler)) return;
  const std::string slow = SlowText(job, group);
  const bool named = !live.slow.empty();
  live.slow_windows = slow.empty() ? 0 : live.slow_windows + 1;
  live.slow = live.slow_windows < options_.straggler.windows ? "" : slow;
  if (live.slow.empty() && named) {
    Notice(job, absl::StrCat("group ", group.group, " is as fast as its peers again"), now);
  } else if (!live.slow.empty() && !named) {
    Notice(job, absl::StrCat("group ", group.group, " on ", PlaceText(group), " is a straggler: ", live.slow), now);
  }
  Changed(job);
  if (!live.slow.empty()) MoveStraggler(job, group, now);
}

std::string ClusterState::SlowText(const Job& job, const GroupRecord& group) const {
  std::vector<absl::Duration> peers;
  const size_t kind = KindIndexOf(job.record.spec, group.group);
  for (const GroupRecord& other : job.record.groups) {
    const std::optional<absl::Duration> work = job.live[other.group].work.of_a_step();
    if (other.group == group.group || other.state != v1::GROUP_STATE_RUNNING || !work.has_value()) continue;
    if (KindIndexOf(job.record.spec, other.group) == kind) peers.push_back(*work);
  }
  if (peers.empty()) return "";
  const absl::Duration own = *job.live[group.group].work.of_a_step();
  const absl::Duration median = Median(std::move(peers));
  if (own <= options_.straggler.factor * median) return "";
  return absl::StrCat("it works ", MillisecondsText(own), " on a step, its peers ", MillisecondsText(median));
}

// A group leaves only for workers that have room for it now, and not while a group waits that could run on them.
void ClusterState::MoveStraggler(Job& job, GroupRecord& group, Instant now) {
  LiveGroup& live = job.live[group.group];
  const v1::GroupKind kind = KindOf(job.record.spec, group.group);
  if (!kind.move_stragglers() || !live.leaves.empty() || now.steady < live.moves_from) return;
  std::set<std::string> workers;
  for (const GroupPart& part : group.parts) workers.insert(part.worker);
  std::vector<FreeWorker> others = WorkersFor(now);
  const auto is_own = [&workers](const FreeWorker& worker) { return worker.avoided || workers.count(worker.name) > 0; };
  others.erase(std::remove_if(others.begin(), others.end(), is_own), others.end());
  WaitingGroup moved = {job.record.job_id, group.group, kind.ranks(), kind.site()};
  moved.command = HasCommand(job.record.spec);
  if (AnyWaitsFor(others)) return;
  if (PlaceGroups({moved}, std::move(others), now.wall).front().parts.empty()) return;
  live.moves_from = now.steady + options_.straggler.move_again;
  live.unwanted = std::move(workers);
  live.leaves = absl::StrCat("straggler on ", PlaceText(group), ": ", live.slow);
  Log(job, absl::StrCat("group ", group.group, " leaves, to start on another worker: ", live.leaves), now);
  StopParts(job, group, live.leaves, StopHow::kLeave);
}

bool ClusterState::AnyWaitsFor(const std::vector<FreeWorker>& workers) const {
  for (const auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    for (const GroupRecord& group : job.record.groups) {
      if (group.state != v1::GROUP_STATE_WAITING) continue;
      WaitingGroup waits = {job.record.job_id, group.group, 1, KindOf(job.record.spec, group.group).site()};
      waits.command = HasCommand(job.record.spec);
      const auto suits = [&waits](const FreeWorker& worker) { return Suits(waits, worker); };
      if (std::any_of(workers.begin(), workers.end(), suits)) return true;
    }
  }
  return false;
}

}  // namespace hooke
