#ifndef HOOKE_SERVER_COORDINATOR_LIVENESS_H_
#define HOOKE_SERVER_COORDINATOR_LIVENESS_H_

// Decides who is silent, who is lost, and which of its groups a worker that says hello may go on running. Pure
// functions of plain values.

#include <string>

#include "absl/time/time.h"
#include "server/coordinator/records.h"

namespace hooke {

struct LivenessOptions {
  absl::Duration silent_after = absl::Seconds(4);  // After this silence users are told.
  absl::Duration lease = absl::Seconds(10);  // After this silence a worker's groups start elsewhere. > silent_after.
};

enum class Liveness { kAlive, kSilent, kLost };

Liveness LivenessOf(absl::Duration silence, const LivenessOptions& options);

// Ticks should be moments apart. A long time between two means that the coordinator itself was stopped: it is returned,
// otherwise zero. The caller moves each last_heard by it, so that nobody is taken for lost while nobody listened.
absl::Duration UnlistenedGap(absl::Duration since_last_tick);

enum class Adoption {
  kAdopt,  // It is the group's current incarnation, on this worker: it goes on.
  kStop,   // It is stale, ended, another worker's or unknown: the worker must stop it.
};

struct AdoptionDecision {
  Adoption what = Adoption::kStop;
  std::string reason;  // Always set.
};

// `running` is a group that `worker` says it runs. `job` is the record of its job, null if there is none.
AdoptionDecision AdoptGroup(const GroupKey& running, const std::string& worker, const JobRecord* job);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_LIVENESS_H_
