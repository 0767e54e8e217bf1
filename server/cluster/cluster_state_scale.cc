// ClusterState: jobs whose number of groups changes while they run. All groups leave first. Then a new generation
// begins, whose groups divide the data that is left.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/next_generation.h"

namespace hooke {

absl::Status ClusterState::Scale(const v1::ScaleJobRequest& request, Instant now) {
  Job* job = FindJob(request.job_id());
  if (job == nullptr) {
    return absl::NotFoundError(absl::StrCat("no job ", Shortened(request.job_id(), 80), ": `hooke jobs` lists them"));
  }
  JobRecord& record = job->record;
  if (HasEnded(record.state) || record.groups.back().task == v1::GroupStart::EVALUATE) {
    return absl::FailedPreconditionError(absl::StrCat("the groups of job ", record.job_id, " have ended"));
  }
  v1::JobSpec present = record.spec;
  if (record.generations.wanted.has_value()) present = WithGroups(present, *record.generations.wanted);
  const absl::StatusOr<v1::GroupsSpec> groups = ScaledGroups(present, request.site(), request.groups());
  if (!groups.ok()) return groups.status();
  const bool changes = groups->SerializeAsString() != present.groups().SerializeAsString();
  if (changes) {
    if (absl::Status status = CheckDataSufficesFor(*job, *groups); !status.ok()) return status;
  }
  const std::vector<v1::GroupKind> kinds = KindsOf(record.spec);
  job->watch.resize(kinds.size());
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    if (request.site().empty() || kinds[kind].site() == request.site()) job->watch[kind].chosen = true;
  }
  if (!changes) return absl::OkStatus();
  Log(*job, absl::StrCat("a user changes the groups to ", GroupsText(WithGroups(present, *groups))), now);
  ChangeGroups(*job, *groups, now);
  Place(now);
  return absl::OkStatus();
}

absl::Status ClusterState::CheckDataSufficesFor(const Job& job, const v1::GroupsSpec& groups) const {
  for (const LiveGroup& live : job.live) {
    if (absl::Status status = CheckDataSuffices(job.record.spec, live.progress, groups); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void ClusterState::ChangeGroups(Job& job, const v1::GroupsSpec& groups, Instant now) {
  job.record.generations.wanted = groups;
  Store(job);
  for (GroupRecord& group : job.record.groups) {
    for (const GroupPart& part : group.parts) {
      const auto worker = workers_.find(part.worker);
      if (worker != workers_.end()) AskToLeave(worker->second, job, group, now);
    }
  }
}

void ClusterState::BeginGenerationIfDue(Job& job, Instant now) {
  JobRecord& record = job.record;
  if (!record.generations.wanted.has_value() || HasEnded(record.state)) return;
  if (record.groups.back().task == v1::GroupStart::EVALUATE) {
    record.generations.wanted.reset();
    return Notice(job, "all groups had finished before their number could change", now);
  }
  const auto is_placed = [](const GroupRecord& group) { return IsPlaced(group.state); };
  if (std::any_of(record.groups.begin(), record.groups.end(), is_placed)) return;
  BeginGeneration(record);
  // Until the first group of the generation starts, the job waits in the queue.
  record.state = v1::JOB_STATE_QUEUED;
  record.reason = "the number of groups has changed";
  job.live.clear();
  job.live.resize(record.groups.size());
  for (const GroupRecord& group : record.groups) job.live[group.group].furthest_step = group.best_step;
  job.goes_on = !record.generations.earlier.empty();
  if (job.goes_on) job.resized_at = now.steady;
  Notice(job,
         absl::StrCat("generation ", record.generations.earlier.size() + 1, ": ", GroupsText(record.spec),
                      record.generations.earlier.empty()
                          ? ""
                          : absl::StrCat(" divide what is left, from step ", record.generations.first_step)),
         now);
  Store(job);
  PlaceSoon();
}

}  // namespace hooke
