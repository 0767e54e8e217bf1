#ifndef HOOKE_ALGORITHMS_PACE_H_
#define HOOKE_ALGORITHMS_PACE_H_

// How the exchanges of a job's groups go together, decided from what the groups tell a server. Pure. Used by Shard and
// by the trainer.

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hooke {

// What a group last said of its speed.
struct GroupPace {
  double steps_per_second = 0;  // 0: it has said nothing.
  absl::Time at = absl::InfinitePast();
};

// The fastest of the groups that have said so within `memory`; 0: none has.
double FastestPace(absl::Span<const GroupPace> paces, absl::Time now, absl::Duration memory);

// Steps between two exchanges of a group, so that all groups exchange about equally often, the fastest each `base`
// steps: dynamic local updates, DyLU (Liu et al., arXiv 2401.09135). 1 to `base`; `base` where a speed is not known
// (0).
uint64_t PacedInterval(uint64_t base, double own, double fastest);

// Whose turn it is, of fragments that have had so many rounds: the one that is behind, or else the first. Whoever has
// joined or lagged behind comes in step with the others by it. 0 where there is none.
uint32_t NextFragment(absl::Span<const uint64_t> rounds);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_PACE_H_
