// ClusterState: workers on which groups die, and which are therefore avoided.

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/shortened.h"
#include "server/cluster/tally.h"
#include "wire/utc_time.h"

namespace hooke {
namespace {

constexpr size_t kWhyBytesMax = 200;

}  // namespace

void ClusterState::NoteFailure(const Job& job, const GroupRecord& group, const GroupOutcome& outcome, Instant now) {
  // A missing server is no fault of the worker. A group that somebody has stopped did not die.
  if (outcome.ok || outcome.server_failures > 0 || outcome.code == absl::StatusCode::kCancelled) return;
  Worker* worker = workers_.Find(workers_.WorkerToBlame(group, job.live[group.group]));
  if (worker == nullptr) return;
  NoteDeath(*worker, {job.record.job_id, group.group, now.steady, outcome.message}, now);
}

void ClusterState::NoteDeath(Worker& worker, Death death, Instant now) {
  const bool was_avoided = Avoid(worker.deaths, now.steady, options_.avoid).has_value();
  rooms_.Changed(worker.name);
  death.why = Shortened(death.why, kWhyBytesMax);
  AddDeath(worker.deaths, std::move(death), options_.avoid);
  const std::string why = AvoidedText(worker, options_.avoid, now);
  if (!was_avoided && !why.empty()) effects_.LogDaemon(absl::StrCat("worker ", worker.name, " is avoided: ", why), now);
}

}  // namespace hooke
