#include "mpi_group/transport/steady_clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace hooke {

absl::Time SteadyNow() {
  const auto steady = [] { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); };
  static const absl::Time zero = absl::Now() - steady();
  return zero + steady();
}

}  // namespace hooke
