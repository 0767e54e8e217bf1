#ifndef HOOKE_SERVER_CLUSTER_LIVENESS_H_
#define HOOKE_SERVER_CLUSTER_LIVENESS_H_

// Decides who is silent, who is lost, and which of its groups a worker that says hello may go on running. Pure
// functions of plain values.

#include <string>

#include "absl/time/time.h"
#include "clocks/instant.h"
#include "server/records/records.h"

namespace hooke {

struct LivenessOptions {
  absl::Duration silent_after = absl::Seconds(4);  // A daemon that was not heard for this long is reported to users.
  // The groups of a worker that was not heard for this long start elsewhere. > silent_after.
  absl::Duration lease = absl::Seconds(10);
};

enum class Liveness { kAlive, kSilent, kLost };

Liveness LivenessOf(absl::Duration silence, const LivenessOptions& options);
inline Liveness LivenessOf(Instant last_heard, Instant now, const LivenessOptions& options) {
  return LivenessOf(now.steady - last_heard.steady, options);
}

// A lost worker, or a server that no unfinished job uses, is no longer listed if it was last heard longer ago than
// this.
constexpr absl::Duration kForgetAfter = absl::Hours(1);

// Returns the time during which the coordinator itself was stopped. That is `since_last_tick` if it is much longer than
// the pause between two ticks, and otherwise zero. The caller adds the result to each last_heard, because the
// coordinator could hear nobody in that time.
absl::Duration UnlistenedGap(absl::Duration since_last_tick);

enum class Adoption {
  kAdopt,  // The worker runs the group's current incarnation, which is placed there. It goes on.
  // The worker runs the group's last incarnation, which was given up when the worker was lost. No other has started
  // since. It goes on.
  kTakeBack,
  // The group's incarnation is old, or the group has ended, is unknown or is another worker's. The worker must stop it.
  kStop,
};

struct AdoptionDecision {
  Adoption what = Adoption::kStop;
  std::string reason;  // Always set.
};

// Decides whether `worker` may go on running the group `running`, which its hello names. `job` is the record of the
// group's job, null if there is none. `cut_off`: the group waits only because the worker that ran it was lost.
AdoptionDecision AdoptGroup(const GroupKey& running, const std::string& worker, const JobRecord* job,
                            bool cut_off = false);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_LIVENESS_H_
