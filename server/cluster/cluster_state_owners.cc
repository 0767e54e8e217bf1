// ClusterState: what the owners of jobs use of the cluster, and the order of jobs that follows from it.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/scheduling/fair_share.h"

namespace hooke {
namespace {

constexpr absl::Duration kStoreUsesEvery = absl::Minutes(1);
// An owner who used less than this on average, and uses nothing now, is forgotten.
constexpr double kLeastMeanSlots = 1e-3;

}  // namespace

void ClusterState::LoadUses(const std::vector<OwnerUse>& stored, Instant now) {
  charged_at_ = uses_stored_at_ = now.steady;
  for (const OwnerUse& use : stored) {
    const absl::Duration passed = now.wall - absl::FromUnixMillis(use.unix_ms);
    uses_[use.owner].slot_seconds = SlotSecondsAfter(use.slot_seconds, 0, passed, options_.fair_half_life);
  }
}

void ClusterState::ChargeOwners(Instant now) {
  const absl::Duration passed = now.steady - charged_at_;
  charged_at_ = now.steady;
  for (auto& [owner, use] : uses_) {
    use.slot_seconds = SlotSecondsAfter(use.slot_seconds, use.slots, passed, options_.fair_half_life);
    use.slots = 0;
  }
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    const uint64_t slots = TallyOf(job).placed_slots;
    if (slots > 0) uses_[job.record.spec.owner()].slots += slots;
  }
  if (now.steady - uses_stored_at_ >= kStoreUsesEvery) StoreUses(now);
}

void ClusterState::StoreUses(Instant now) {
  uses_stored_at_ = now.steady;
  for (auto it = uses_.begin(); it != uses_.end();) {
    const bool idle =
        it->second.slots == 0 && MeanSlots(it->second.slot_seconds, options_.fair_half_life) < kLeastMeanSlots;
    effects_.uses[it->first] = {it->first, idle ? 0 : it->second.slot_seconds, absl::ToUnixMillis(now.wall)};
    it = idle ? uses_.erase(it) : std::next(it);
  }
}

Quotas ClusterState::QuotasOf(const std::vector<Job*>& jobs) const {
  Quotas quotas;
  for (const Job* job : jobs) {
    const std::string& owner = job->record.spec.owner();
    const std::optional<uint32_t> limit = options_.owner_slots.LimitOf(owner);
    if (!limit.has_value()) continue;
    const auto use = uses_.find(owner);
    quotas[owner] = {use == uses_.end() ? 0 : use->second.slots, *limit};
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
  std::map<std::string, double> uses;
  for (const auto& [owner, use] : uses_) {
    uses[owner] = static_cast<double>(use.slots) + MeanSlots(use.slot_seconds, options_.fair_half_life);
  }
  std::vector<Job*> ordered;
  ordered.reserve(jobs.size());
  for (const size_t index : FairOrder(queued, uses)) ordered.push_back(jobs[index]);
  return ordered;
}

}  // namespace hooke
