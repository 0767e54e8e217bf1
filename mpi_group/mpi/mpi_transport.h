#ifndef HOOKE_MPI_GROUP_MPI_MPI_TRANSPORT_H_
#define HOOKE_MPI_GROUP_MPI_MPI_TRANSPORT_H_

// A Transport between the ranks of MPI_COMM_WORLD, with communicators of its own, so that its messages meet no others.
// Plain MPI-3.1. The session outlives it, and is marked failed by its first error; only Settle calls MPI after that.
//
// MPI keeps short messages for receivers that come later: a rank that only sends in a call may end it though a receiver
// is in another one. Both hear of that in the next call in which one waits for the other.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/mpi/mpi_session.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

struct MpiTransportOptions {
  absl::Time deadline = absl::InfiniteFuture();  // For making it, which is collective.
  // Longer messages travel as several; MPI-3.1 counts in int. All ranks pass the same.
  uint64_t message_bytes_max = uint64_t{1} << 30;
};

// DEADLINE_EXCEEDED: not all ranks called it. INTERNAL: MPI's own message.
absl::StatusOr<std::unique_ptr<Transport>> MakeMpiTransport(MpiSession& session, const MpiTransportOptions& options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_TRANSPORT_H_
