#include "server/coordinator/liveness.h"

#include "absl/strings/str_cat.h"
#include "job/job_state.h"

namespace hooke {

Liveness LivenessOf(absl::Time last_heard, absl::Time now, const LivenessOptions& options) {
  const absl::Duration silence = now - last_heard;
  if (silence >= options.lease) return Liveness::kLost;
  return silence >= options.silent_after ? Liveness::kSilent : Liveness::kAlive;
}

absl::Duration UnlistenedGap(absl::Time last_tick, absl::Time now) {
  const absl::Duration gap = now - last_tick;
  // Backwards too: else a clock set back would hide a silence for as long as it was set back.
  return gap > absl::Seconds(2) || gap < absl::ZeroDuration() ? gap : absl::ZeroDuration();
}

AdoptionDecision AdoptGroup(const GroupKey& running, const std::string& worker, const JobRecord* job) {
  if (job == nullptr) return {Adoption::kStop, absl::StrCat("the coordinator knows no job ", running.job_id)};
  if (HasEnded(job->state)) return {Adoption::kStop, "the job has ended"};
  if (running.group >= job->groups.size()) return {Adoption::kStop, "the job has no such group"};
  const GroupRecord& group = job->groups[running.group];
  if (group.incarnation != running.incarnation) {
    return {Adoption::kStop, absl::StrCat("start ", running.incarnation, " was replaced by start ", group.incarnation)};
  }
  if (!IsPlaced(group.state)) {
    return {Adoption::kStop, absl::StrCat("start ", running.incarnation, " was given up")};
  }
  if (group.worker != worker) return {Adoption::kStop, absl::StrCat("it runs on worker ", group.worker)};
  return {Adoption::kAdopt, "it is the group's current start"};
}

}  // namespace hooke
