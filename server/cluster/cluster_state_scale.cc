// ClusterState: jobs whose number of groups changes while they run. All groups leave first. Then the job's servers end
// the generation: they take nothing more of its groups, of which some may only be cut off from here, and say how far
// each had come. Then a new generation begins, whose groups divide the data that is left.
//
// The answers are not stored. A coordinator that is started again finds the job's wish for other groups and asks again;
// a server that has ended a generation gives the same answer each time. A job waits for a server that is down, because
// what that server has of the groups' work decides which data are left.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/group_kinds.h"
#include "job/job_defaults.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/generation_wait.h"
#include "server/cluster/next_generation.h"
#include "wire/steps.h"
#include "wire/utc_time.h"

namespace hooke {
absl::Status ClusterState::Scale(const v1::ScaleJobRequest& request, Instant now) {
  Job* job = jobs_.Find(request.job_id());
  if (job == nullptr) return jobs_.CheckKnown(request.job_id());
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
  effects_.Log(job->record.job_id,
               absl::StrCat("a user changes the groups to ", GroupsText(WithGroups(present, *groups))), now);
  ChangeGroups(*job, *groups, now);
  Place(now);
  return absl::OkStatus();
}

void ClusterState::ChangeGroups(Job& job, const v1::GroupsSpec& groups, Instant now) {
  job.record.generations.wanted = groups;
  changing_jobs_.insert(job.record.number);
  Store(job);
  for (GroupRecord& group : job.record.groups) {
    for (const GroupPart& part : group.parts) {
      const Worker* worker = workers_.Find(part.worker);
      if (worker != nullptr) AskToLeave(*worker, job, group, now);
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
  if (!GenerationIsEnding(record)) return;
  // Until the first group of the next generation starts, the job waits in the queue, but before those that never ran.
  const bool was_queued = std::exchange(record.state, v1::JOB_STATE_QUEUED) == v1::JOB_STATE_QUEUED;
  job.goes_on = job.goes_on || !was_queued;
  if (std::string missing = NotClosedText(job, servers_); !missing.empty()) {
    const bool any_waits = std::any_of(record.groups.begin(), record.groups.end(),
                                       [](const GroupRecord& group) { return group.state == v1::GROUP_STATE_WAITING; });
    // If a group waits, ShowQueue gives the job its reason.
    if ((!was_queued || !any_waits) && std::exchange(record.reason, missing) != missing) Changed(job);
    if (!was_queued) Store(job);
    return;
  }
  std::vector<v1::ClosedGeneration> answers;
  for (const JobServer& shard : record.servers) answers.push_back(std::move(job.closed[KeyOf(shard)]));
  job.closed.clear();
  job.earlier_restarts += RestartsOf(record);
  BeginGeneration(record, answers);
  record.reason = "the number of groups has changed";
  job.live.clear();
  job.live.resize(record.groups.size());
  for (const GroupRecord& group : record.groups) job.live[group.group].furthest_step = group.best_step;
  if (!record.generations.earlier.empty()) job.resized_at = now.steady;
  Notice(job,
         absl::StrCat("generation ", record.generations.earlier.size() + 1, ": ", GroupsText(record.spec),
                      record.generations.earlier.empty()
                          ? ""
                          : absl::StrCat(" divide what is left, from step ", record.generations.first_step)),
         now);
  Store(job);
  PlaceSoon();
}

void ClusterState::TakeClosed(const std::string& key, const v1::ServerHeartbeatRequest& request, Instant now) {
  bool complete = false;
  for (const v1::ClosedGeneration& closed : request.closed()) {
    Job* job = jobs_.Find(closed.job_id());
    const bool is_asked = job != nullptr && GenerationIsEnding(job->record) && HasShardOn(job->record, key) &&
                          closed.incarnation() == NextFirstIncarnation(job->record);
    if (!is_asked || job->closed.count(key) > 0) continue;
    v1::ClosedGeneration& taken = job->closed[key] = closed;
    // A rank may have exchanged with any step. That spoils its own job, but must not take the server from the others.
    for (v1::ClosedGroup& group : *taken.mutable_groups()) group.set_step(std::min(group.step(), kStepMax));
    complete = complete || NotClosedText(*job, servers_).empty();
  }
  if (complete) Place(now);
}

void ClusterState::AddGenerationEnds(const std::string& key, v1::ServerHeartbeatResponse& response) {
  for (auto number = changing_jobs_.begin(); number != changing_jobs_.end();) {
    const Job* job = jobs_.FindNumber(*number);
    const bool changes = job != nullptr && job->record.generations.wanted.has_value();
    if (!changes) {
      number = changing_jobs_.erase(number);
      continue;
    }
    ++number;
    const JobRecord& record = job->record;
    if (!GenerationIsEnding(record) || !HasShardOn(record, key) || job->closed.count(key) > 0) continue;
    const uint32_t incarnation = NextFirstIncarnation(record);
    if (incarnation == 1 || response.closing_size() == kGenerationEndsMax) continue;
    v1::GenerationEnd& end = *response.add_closing();
    end.set_job_id(record.job_id);
    end.set_job_key(record.submission_id);
    end.set_incarnation(incarnation);
  }
}

}  // namespace hooke
