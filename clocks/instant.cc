#include "clocks/instant.h"

#include "absl/time/clock.h"
#include "clocks/steady_time.h"

namespace hooke {

Instant InstantNow() { return {absl::Now(), SteadyTime() - absl::UnixEpoch()}; }

}  // namespace hooke
