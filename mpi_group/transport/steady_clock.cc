#include "mpi_group/transport/steady_clock.h"

#include <chrono>

#include "absl/time/time.h"

namespace hooke {

absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace hooke
