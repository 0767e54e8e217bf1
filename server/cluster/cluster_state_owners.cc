// ClusterState: what the owners of jobs use of the cluster, and the order of jobs that follows from it.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/tally.h"
#include "server/scheduling/fair_share.h"

namespace hooke {
void ClusterState::ChargeOwners(Instant now) {
  std::map<std::string, uint64_t> slots;
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    const uint64_t placed = TallyOf(job).placed_slots;
    if (placed > 0) slots[job.record.spec.owner()] += placed;
  }
  uses_.Charge(slots, now);
  for (auto& [owner, use] : uses_.TakeDue(now)) effects_.uses[owner] = std::move(use);
}

Quotas ClusterState::QuotasOf(const std::vector<Job*>& jobs) const {
  Quotas quotas;
  for (const Job* job : jobs) {
    const std::string& owner = job->record.spec.owner();
    const std::optional<uint32_t> limit = options_.owner_slots.LimitOf(owner);
    if (!limit.has_value()) continue;
    quotas[owner] = {uses_.SlotsOf(owner), *limit};
  }
  return quotas;
}

absl::Status ClusterState::CheckQuota(const v1::JobSpec& spec) const {
  const std::optional<uint32_t> limit = options_.owner_slots.LimitOf(spec.owner());
  if (!limit.has_value() || spec.groups().ranks() <= *limit) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a group of ", spec.groups().ranks(), " ranks can never start, because ", OwnerText(spec.owner()),
                   " may use ", *limit,
                   " slots at once: make groups.ranks smaller, or have --owner-slots of the "
                   "coordinator changed"));
}

// Returns the unfinished jobs, those first that get free slots first.
std::vector<ClusterState::Job*> ClusterState::UnfinishedInOrder() {
  std::vector<Job*> jobs;
  std::vector<QueuedJob> queued;
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    jobs.push_back(&job);
    const v1::JobSpec& spec = job.record.spec;
    const bool started = job.record.state != v1::JOB_STATE_QUEUED || job.goes_on;
    queued.push_back({number, spec.priority(), spec.owner(), TallyOf(job).waiting_slots, started});
  }
  std::vector<Job*> ordered;
  ordered.reserve(jobs.size());
  for (const size_t index : FairOrder(queued, uses_.Weights())) ordered.push_back(jobs[index]);
  return ordered;
}

}  // namespace hooke
