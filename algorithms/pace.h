#ifndef HOOKE_ALGORITHMS_PACE_H_
#define HOOKE_ALGORITHMS_PACE_H_

// Decides how often a group exchanges and which fragment comes next, from reports of the groups to a server. Pure.

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hooke {

// The speed that a group last reported.
struct GroupPace {
  double steps_per_second = 0;  // 0 if the group has reported none.
  absl::Time at = absl::InfinitePast();
};

// Returns the fastest speed that was reported within the last `memory`, or 0 if there is none.
double FastestPace(absl::Span<const GroupPace> paces, absl::Time now, absl::Duration memory);

// Returns the steps between two exchanges of a group with speed `own`, from 1 to `base`. Groups then exchange about
// equally often, and the fastest exchanges every `base` steps: dynamic local updates, DyLU (Liu et al., arXiv
// 2401.09135). Returns `base` if a speed is unknown (0).
uint64_t PacedInterval(uint64_t base, double own, double fastest);

// Returns the fragment with the fewest rounds so far, the first of equal ones; 0 if `rounds` is empty. With this
// choice, a group that joined late or lagged behind gets in step with the others.
uint32_t NextFragment(absl::Span<const uint64_t> rounds);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_PACE_H_
