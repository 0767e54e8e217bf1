// ClusterState: groups that are slower than their peers.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/tally.h"
#include "server/scheduling/placement.h"
#include "server/scheduling/room.h"
#include "server/scheduling/straggler.h"

namespace hooke {
namespace {

std::string MillisecondsText(absl::Duration time) {
  return absl::StrFormat("%.3g ms", absl::ToDoubleMilliseconds(time));
}

// Returns why the group is slow by its last measurement: it takes more than `factor` times as long for a step as its
// peers. "": it is not slow. nullopt: it has no peers.
std::optional<std::string> SlowText(const known::Job& job, const GroupRecord& group, double factor) {
  std::vector<absl::Duration> peers;
  const size_t kind = KindIndexOf(job.record.spec, group.group);
  for (const GroupRecord& other : job.record.groups) {
    const std::optional<absl::Duration> work = job.live[other.group].work.of_a_step();
    if (other.group == group.group || other.state != v1::GROUP_STATE_RUNNING || !work.has_value()) continue;
    if (KindIndexOf(job.record.spec, other.group) == kind) peers.push_back(*work);
  }
  if (peers.empty()) return std::nullopt;
  const absl::Duration own = *job.live[group.group].work.of_a_step();
  const absl::Duration median = Median(std::move(peers));
  if (own <= factor * median) return "";
  return absl::StrCat("it works ", MillisecondsText(own), " on a step, its peers ", MillisecondsText(median));
}

// Returns whether a group waits that could run on these workers.
bool AnyWaitsFor(const std::vector<FreeWorker>& workers, const JobTable& jobs) {
  for (const auto& [number, job] : jobs) {
    if (HasEnded(job.record.state)) continue;
    for (const GroupRecord& group : job.record.groups) {
      if (group.state != v1::GROUP_STATE_WAITING) continue;
      const WaitingGroup waits = WaitingGroupOf(job, group.group);
      uint64_t slots = 0;
      for (const FreeWorker& worker : workers) slots += Suits(waits, worker) ? worker.slots : 0;
      if (slots >= waits.ranks) return true;
    }
  }
  return false;
}

}  // namespace

void ClusterState::NoteWork(Job& job, GroupRecord& group, const v1::RankProgress& progress, Instant now) {
  LiveGroup& live = job.live[group.group];
  const absl::Duration work = absl::Seconds(progress.compute_seconds() + progress.collective_seconds());
  if (!live.work.Note(now.steady, progress.step(), work, options_.straggler)) return;
  const std::optional<std::string> slow = SlowText(job, group, options_.straggler.factor);
  if (!slow.has_value()) return;
  const bool named = !live.slow.empty();
  if (slow->empty()) {
    live.slow_windows -= std::min(live.slow_windows, 1u);
    if (live.slow_windows == 0) live.slow.clear();
  } else {
    live.slow_windows = std::min(live.slow_windows + 1, options_.straggler.windows);
    if (named || live.slow_windows == options_.straggler.windows) live.slow = *slow;
  }
  if (live.slow.empty() && named) {
    Notice(job, absl::StrCat("group ", group.group, " is as fast as its peers again"), now);
  } else if (!live.slow.empty() && !named) {
    Notice(job, absl::StrCat("group ", group.group, " on ", PlaceText(group), " is a straggler: ", live.slow), now);
  }
  Changed(job);
  if (!slow->empty() && !live.slow.empty()) MoveStraggler(job, group, now);
}

// A group leaves only for workers that have room for it now, and not while a group waits that could run on them.
void ClusterState::MoveStraggler(Job& job, GroupRecord& group, Instant now) {
  LiveGroup& live = job.live[group.group];
  if (!KindOf(job.record.spec, group.group).move_stragglers() || !live.leaves.empty()) return;
  if (now.steady < live.moves_from || live.moves >= options_.straggler.moves_max) return;
  std::set<std::string> workers;
  for (const GroupPart& part : group.parts) workers.insert(part.worker);
  std::vector<FreeWorker> others;
  workers.insert(live.unwanted.begin(), live.unwanted.end());
  for (const Room* room : RefreshRooms(now).all()) {
    const FreeWorker& worker = room->worker;
    if (!worker.avoided && !worker.drained && workers.count(worker.name) == 0) others.push_back(worker);
  }
  if (AnyWaitsFor(others, jobs_)) return;
  const WaitingGroup moved = WaitingGroupOf(job, group.group);
  if (PlaceGroups({moved}, std::move(others), now.wall).front().parts.empty()) return;
  ++live.moves;
  live.moves_from = now.steady + options_.straggler.move_again;
  live.unwanted = std::move(workers);
  live.leaves = absl::StrCat("straggler on ", PlaceText(group), ": ", live.slow);
  rooms_.Changed(group);
  effects_.Log(job.record.job_id,
               absl::StrCat("group ", group.group, " leaves, to start on another worker: ", live.leaves), now);
  StopParts(job, group, live.leaves, StopHow::kLeave);
}

}  // namespace hooke
