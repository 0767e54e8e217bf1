#include "server/cluster/liveness.h"

#include "absl/strings/str_cat.h"
#include "job/job_state.h"

namespace hooke {

Liveness LivenessOf(absl::Duration silence, const LivenessOptions& options) {
  if (silence >= options.lease) return Liveness::kLost;
  return silence >= options.silent_after ? Liveness::kSilent : Liveness::kAlive;
}

absl::Duration UnlistenedGap(absl::Duration since_last_tick) {
  // Ticks are about 100 ms apart. A busy machine may delay one, but hardly by 2 s.
  return since_last_tick > absl::Seconds(2) ? since_last_tick : absl::ZeroDuration();
}

AdoptionDecision AdoptGroup(const GroupKey& running, const std::string& worker, const JobRecord* job, bool cut_off) {
  if (job == nullptr) return {Adoption::kStop, absl::StrCat("the coordinator knows no job ", running.job_id)};
  if (HasEnded(job->state)) return {Adoption::kStop, "the job has ended"};
  if (running.group >= job->groups.size()) return {Adoption::kStop, "the job has no such group"};
  const GroupRecord& group = job->groups[running.group];
  if (group.incarnation != running.incarnation) {
    return {Adoption::kStop, absl::StrCat("start ", running.incarnation, " was replaced by start ", group.incarnation)};
  }
  const bool ran_here = PartOn(group, worker) != nullptr;
  // While the number of groups changes, servers refuse those that have ended, and this one counts as ended.
  const bool changes = job->generations.wanted.has_value();
  if (cut_off && group.state == v1::GROUP_STATE_WAITING && ran_here && !changes) {
    return {Adoption::kTakeBack, "it was given up, and has not started elsewhere since"};
  }
  if (!IsPlaced(group.state)) {
    return {Adoption::kStop, absl::StrCat("start ", running.incarnation, " was given up")};
  }
  if (!ran_here) return {Adoption::kStop, absl::StrCat("it runs on ", PlaceText(group))};
  return {Adoption::kAdopt, "it is the group's current start"};
}

}  // namespace hooke
