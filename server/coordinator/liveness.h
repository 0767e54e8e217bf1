#ifndef HOOKE_SERVER_COORDINATOR_LIVENESS_H_
#define HOOKE_SERVER_COORDINATOR_LIVENESS_H_

// Who is silent, who is lost, and what becomes of the groups of a worker that says hello. Pure functions of plain
// values. Used by ClusterState; their tests call them with tables in virtual time.

#include <string>

#include "absl/time/time.h"
#include "server/coordinator/records.h"

namespace hooke {

struct LivenessOptions {
  absl::Duration silent_after = absl::Seconds(4);  // People are told.
  absl::Duration lease = absl::Seconds(10);        // A worker's groups are placed again. > silent_after.
};

enum class Liveness { kAlive, kSilent, kLost };

Liveness LivenessOf(absl::Duration silence, const LivenessOptions& options);

// For how long the coordinator was stopped between two ticks, which should be moments apart: zero, or the time by which
// all last_heard must move so that nobody is taken for lost because nobody could listen.
absl::Duration UnlistenedGap(absl::Duration since_last_tick);

enum class Adoption {
  kAdopt,  // It is the group's current incarnation, on this worker: it goes on.
  kStop,   // Stale, ended, another worker's, or unknown.
};

struct AdoptionDecision {
  Adoption what = Adoption::kStop;
  std::string reason;  // Always set.
};

// `running` is a group that worker `worker` says it runs; `job` the record of its job, nullptr when there is none.
AdoptionDecision AdoptGroup(const GroupKey& running, const std::string& worker, const JobRecord* job);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_LIVENESS_H_
