// ClusterState: groups that are held because they end in the same way again and again.

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/scheduling/causes.h"

namespace hooke {

void ClusterState::NoteCause(LiveGroup& live, GroupRecord& group, const GroupDecision& decision) {
  group.cause = decision.cause;
  group.repeats = decision.repeats;
  group.last_lines.clear();
  if (decision.state == v1::GROUP_STATE_HELD) group.last_lines = {live.last_lines.begin(), live.last_lines.end()};
  // The last try before the group is held goes to other workers if they have room: the one where it died may be at
  // fault.
  if (decision.state == v1::GROUP_STATE_WAITING && group.repeats + 1 == options_.restart.repeats_max) {
    for (const GroupPart& part : group.parts) live.unwanted.insert(part.worker);
  }
}

absl::StatusOr<uint32_t> ClusterState::Resume(const std::string& job_id, Instant now) {
  Job* job = jobs_.Find(job_id);
  if (job == nullptr) return jobs_.CheckKnown(job_id);
  if (HasEnded(job->record.state)) {
    return absl::FailedPreconditionError(absl::StrCat("job ", job_id, " has ended; submit it again"));
  }
  uint32_t resumed = 0;
  for (GroupRecord& group : job->record.groups) {
    if (group.state != v1::GROUP_STATE_HELD) continue;
    ++resumed;
    group.state = v1::GROUP_STATE_WAITING;
    group.reason = "resumed by the user";
    group.failures = 0;
    group.cause.clear();
    group.repeats = 0;
    group.last_lines.clear();
    job->live[group.group].retry_at = now.steady;
  }
  if (resumed == 0) return 0;
  if (job->record.state == v1::JOB_STATE_HELD) {
    const bool evaluates = job->record.groups.back().task == v1::GroupStart::EVALUATE;
    job->record.state = evaluates ? v1::JOB_STATE_EVALUATING : v1::JOB_STATE_QUEUED;
    job->record.reason = evaluates ? "all groups have finished; the center is being evaluated" : "resumed by the user";
  }
  Notice(*job, absl::StrCat("resumed by the user: ", resumed, resumed == 1 ? " group goes" : " groups go", " on"), now);
  Store(*job);
  Place(now);
  return resumed;
}

}  // namespace hooke
