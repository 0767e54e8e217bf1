#include "server/coordinator/instant.h"

#include <chrono>

#include "absl/time/clock.h"

namespace hooke {

Instant InstantNow() { return {absl::Now(), absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch())}; }

}  // namespace hooke
