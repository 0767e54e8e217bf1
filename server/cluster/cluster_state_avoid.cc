// ClusterState: workers on which groups die, and which are therefore avoided.

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/cluster/cluster_state.h"
#include "wire/utc_time.h"

namespace hooke {
namespace {

constexpr size_t kWhyBytesMax = 200;

}  // namespace

void ClusterState::NoteFailure(const Job& job, const GroupRecord& group, const GroupOutcome& outcome, Instant now) {
  // A missing server is no fault of the worker. A group that somebody has stopped did not die.
  if (outcome.ok || outcome.server_failures > 0 || outcome.code == absl::StatusCode::kCancelled) return;
  const auto worker = workers_.find(WorkerToBlame(job, group));
  if (worker == workers_.end()) return;
  NoteDeath(worker->second, {job.record.job_id, group.group, now.steady, outcome.message}, now);
}

std::string ClusterState::WorkerToBlame(const Job& job, const GroupRecord& group) const {
  const std::string& failed_on = job.live[group.group].failed_on;
  if (!failed_on.empty()) return failed_on;
  if (group.parts.size() == 1) return group.parts[0].worker;
  for (const GroupPart& part : group.parts) {
    if (!part.ended && !IsConnected(part.worker)) return part.worker;
  }
  return "";
}

void ClusterState::NoteDeath(Worker& worker, Death death, Instant now) {
  const bool was_avoided = Avoid(worker.deaths, now.steady, options_.avoid).has_value();
  RoomChanged(worker);
  death.why = Shortened(death.why, kWhyBytesMax);
  AddDeath(worker.deaths, std::move(death), options_.avoid);
  const std::string why = AvoidedText(worker, now);
  if (!was_avoided && !why.empty()) LogDaemon(absl::StrCat("worker ", worker.name, " is avoided: ", why), now);
}

std::string ClusterState::AvoidedText(const Worker& worker, Instant now) const {
  const std::optional<Avoidance> avoidance = Avoid(worker.deaths, now.steady, options_.avoid);
  if (!avoidance.has_value()) return "";
  return absl::StrCat("until ", UtcText(now.wall + (avoidance->until - now.steady)), ", because ", avoidance->reason);
}

}  // namespace hooke
