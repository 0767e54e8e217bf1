#ifndef HOOKE_MPI_GROUP_MPI_MPI_TRANSPORT_H_
#define HOOKE_MPI_GROUP_MPI_MPI_TRANSPORT_H_

// A Transport between the ranks of MPI_COMM_WORLD, over plain MPI-3.1. It has communicators of its own, so that no
// other messages of the program get among its messages. The session must outlive it. Its first error marks the session
// failed; after that only Settle calls MPI.
//
// MPI buffers short messages. So a rank that only sends in a call may complete it although a receiver is in another
// call. The two ranks learn of that in the next call in which one waits for the other.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/mpi/mpi_session.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

struct MpiTransportOptions {
  absl::Time deadline = absl::InfiniteFuture();  // Deadline of making the transport, which is collective.
  // Longer messages travel in several parts, because MPI-3.1 counts bytes in int. All ranks pass the same.
  uint64_t message_bytes_max = uint64_t{1} << 30;
};

// DEADLINE_EXCEEDED: not all ranks called it. INTERNAL: an error of MPI, with its message.
absl::StatusOr<std::unique_ptr<Transport>> MakeMpiTransport(MpiSession& session, const MpiTransportOptions& options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_TRANSPORT_H_
