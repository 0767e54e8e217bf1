// ClusterState: sites that get their workers from a batch system. The agent of such a site asks which groups wait for
// it, and says what they wait for there.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "job/visible_text.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/shortened.h"
#include "server/cluster/tally.h"
#include "wire/worker_limits.h"

namespace hooke {
namespace {

constexpr int kJobsMax = 4096;  // In a request and in a response.
constexpr size_t kNoteBytesMax = 500;

absl::Status CheckRequest(const v1::SiteHeartbeatRequest& request) {
  if (!IsNodeName(request.site())) {
    return absl::InvalidArgumentError(absl::StrCat("a site is \"", absl::CHexEscape(request.site().substr(0, 80)),
                                                   "\", allowed are 1 to 63 characters of [A-Za-z0-9._-]"));
  }
  if (request.instance().empty() || request.instance().size() > 128) {
    return absl::InvalidArgumentError("the instance of a site's agent must have 1 to 128 bytes");
  }
  if (std::max(request.notes_size(), request.jobs_size()) > kJobsMax) {
    return absl::InvalidArgumentError(absl::StrCat("the agent of a site names more than ", kJobsMax, " jobs"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::SiteHeartbeatResponse> ClusterState::SiteHeartbeat(const v1::SiteHeartbeatRequest& request,
                                                                      Instant now) {
  if (absl::Status status = CheckRequest(request); !status.ok()) return status;
  const absl::StatusOr<bool> is_new = sites_.Hear(request.site(), request.instance(), now);
  if (!is_new.ok()) return is_new.status();
  if (*is_new) {
    effects_.LogDaemon(absl::StrCat("site ", request.site(), " gets its workers from a batch system"), now);
  }
  TakeNotes(request, now);
  v1::SiteHeartbeatResponse response = JobsAt(request.site(), now);
  for (const std::string& job_id : request.jobs()) {
    const Job* job = jobs_.Find(job_id);
    if (job == nullptr || HasEnded(job->record.state)) response.add_ended_jobs(job_id);
  }
  return response;
}

void ClusterState::TakeNotes(const v1::SiteHeartbeatRequest& request, Instant now) {
  std::map<std::string, std::string> notes;
  for (const v1::SiteNote& note : request.notes()) {
    const Job* job = jobs_.Find(note.job_id());
    if (job == nullptr || HasEnded(job->record.state)) continue;
    notes[note.job_id()] = Escaped(Shortened(note.text(), kNoteBytesMax));
  }
  for (const auto& [job_id, text] : sites_.SetNotes(request.site(), std::move(notes))) {
    effects_.Log(job_id, absl::StrCat("site ", request.site(), ": ", text), now);
    PlaceSoon();  // It shows the new reasons.
  }
}

v1::SiteHeartbeatResponse ClusterState::JobsAt(const std::string& site, Instant now) {
  v1::SiteHeartbeatResponse response;
  std::map<std::string, std::vector<const Worker*>> own_workers;
  for (const auto& [name, worker] : workers_) {
    if (workers_.IsAlive(worker, now) && worker.site == site && !worker.only_job.empty())
      own_workers[worker.only_job].push_back(&worker);
  }
  ServerChoices choices;
  const std::vector<Job*> jobs = UnfinishedInOrder();
  Quotas quotas = QuotasOf(jobs);
  std::set<std::string> closed;
  for (Job* job : jobs) {
    if (response.jobs_size() == kJobsMax) break;
    v1::SiteJob shown;
    // While no group can start, nodes would be of no use. That holds for groups beyond their owner's quota, too. A
    // group that waits for its next try (retry_at) is shown, because the try needs nodes.
    const bool evaluates = job->record.state == v1::JOB_STATE_EVALUATING;
    const std::string evaluation_site = evaluates ? EvaluationSite(*job, sites_, workers_, now) : "";
    for (const WaitingGroup& group : TallyOf(*job).waiting) {
      if ((evaluates ? evaluation_site : group.site) != site) continue;
      if (job->record.generations.wanted.has_value()) continue;
      if (!OverQuota(group, quotas, closed).empty()) continue;
      if (const auto quota = quotas.find(group.owner); quota != quotas.end()) quota->second.used += group.ranks;
      shown.add_waiting_ranks(group.ranks);
    }
    if (!shown.waiting_ranks().empty() && !WhyNotYet(*job, choices, now).empty()) shown.clear_waiting_ranks();
    const auto own = own_workers.find(job->record.job_id);
    if (shown.waiting_ranks().empty() && own == own_workers.end()) continue;
    shown.set_job_id(job->record.job_id);
    const auto slurm = job->record.spec.slurm().find(site);
    if (slurm != job->record.spec.slurm().end()) *shown.mutable_slurm() = slurm->second;
    for (const v1::GroupKind& kind : KindsOf(job->record.spec)) {
      if (kind.site() == site) shown.set_gpus_per_rank(std::max(shown.gpus_per_rank(), kind.gpus_per_rank()));
    }
    for (const Worker* worker : own == own_workers.end() ? std::vector<const Worker*>() : own->second) {
      v1::SiteWorker& one = *shown.add_workers();
      one.set_name(worker->name);
      one.set_slots(worker->slots);
      // The free slots of a worker that gets no more groups are no room for any.
      one.set_slots_used(worker->gets_groups() ? static_cast<uint32_t>(worker->slots_used()) : worker->slots);
    }
    *response.add_jobs() = std::move(shown);
  }
  return response;
}

}  // namespace hooke
