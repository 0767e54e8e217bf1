#include "mpi_group/collectives/barrier.h"

namespace hooke {

// After step k (from 0) a rank knows that the 2^(k+1) - 1 ranks before it have arrived.
absl::Status DisseminationBarrier(Transport& transport, absl::Time deadline) {
  const int n = transport.size();
  for (int distance = 1; distance < n; distance *= 2) {
    const char sent = 'b';
    char received = 0;
    absl::Status status =
        transport.Exchange({(transport.rank() + distance) % n, absl::MakeConstSpan(&sent, 1)},
                           {(transport.rank() + n - distance) % n, absl::MakeSpan(&received, 1)}, deadline);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace hooke
