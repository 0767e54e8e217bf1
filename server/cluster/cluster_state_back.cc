// ClusterState: groups that were given up with their worker, and what happens when such workers come back.
//
// A worker that is only cut off may still run its groups. When it is back, it goes on with those that have not started
// elsewhere meanwhile. After a link is mended, its workers come back one after another. So a group that one of them
// still runs, as far as is known, must not start on another one that came back a moment earlier.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"

namespace hooke {
namespace {

// A worker that tries to connect while its link is mended has its next packet sent within 4 s: the pauses between them
// are 1, 2 and 4 s, and after 10 s the worker begins anew.
constexpr absl::Duration kOthersBackWithin = absl::Seconds(5);

}  // namespace

void ClusterState::GiveUp(Job& job, GroupRecord& group, const Worker& worker, const std::string& why, Instant now) {
  GroupRecord before = group;
  LoseGroup(job, group, why, now);
  // The parts of a group on several workers were told to stop. A group that is told to leave would not go on.
  LiveGroup& live = job.live[group.group];
  if (group.state != v1::GROUP_STATE_WAITING || group.parts.size() != 1 || !live.leaves.empty()) return;
  live.cut_off.emplace(known::CutOff{std::move(before), live.retry_at, worker.site});
}

void ClusterState::TakeBack(Job& job, GroupRecord& group, const Worker& worker, Instant now) {
  LiveGroup& live = job.live[group.group];
  group = std::move(live.cut_off->before);
  live.cut_off.reset();
  live.waits_since_us = 0;
  rooms_.Changed(group);
  Notice(job,
         absl::StrCat("worker ", worker.name, " is back, and with it group ", group.group, " (start ",
                      group.incarnation, ")"),
         now);
  Store(job);
  ApplyJobDecision(job, now);
}

void ClusterState::NoteNotRunning(Job& job, const GroupRecord& group) {
  LiveGroup& live = job.live[group.group];
  live.retry_at = live.cut_off->retry_at;
  live.cut_off.reset();
  PlaceSoon();
}

void ClusterState::AwaitOthers(const Worker& back, Before before, Instant now) {
  if (before == Before::kKnown) return;
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    for (GroupRecord& group : job.record.groups) {
      LiveGroup& live = job.live[group.group];
      if (group.state != v1::GROUP_STATE_WAITING || !live.cut_off.has_value() || live.cut_off->awaited) continue;
      const std::string& name = group.parts[0].worker;
      const Worker* other = workers_.Find(name);
      const bool forgotten = other == nullptr;
      if (live.cut_off->site != back.site || (!forgotten && !other->lost)) continue;
      // An unknown worker may be one that was forgotten, too. If it runs no group, it is new in two cases: it belongs
      // to a batch job, or the group's worker, which was lost at about the same time, is not forgotten.
      const bool may_be_new = before == Before::kUnknown && back.occupants.empty();
      if (may_be_new && (!back.only_job.empty() || !forgotten)) continue;
      // Once only: workers that come and go must not delay a group forever.
      live.cut_off->awaited = true;
      live.retry_at = std::max(live.retry_at, now.steady + kOthersBackWithin);
      group.reason =
          absl::StrCat("worker ", back.name, " is back, and worker ", name, ", which may still run the group, has ",
                       absl::FormatDuration(kOthersBackWithin), " to come back, too");
      Changed(job);
    }
  }
}

}  // namespace hooke
