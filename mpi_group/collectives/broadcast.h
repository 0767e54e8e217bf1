#ifndef HOOKE_MPI_GROUP_COLLECTIVES_BROADCAST_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_BROADCAST_H_

// Broadcasts along trees (tree.h): every rank ends with the values of rank `root`. Values travel in chunks, with a
// window of them under way to each child, so that a rank passes chunks on while more are coming. After an error the
// values of all ranks but the root are unspecified.
//
// There is no scatter-allgather broadcast (van de Geijn). In it each rank would send and receive up to twice the
// values. In a chain a rank sends and receives them once.

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/collectives/tree.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Broadcast down a tree of the given shape, the same on all ranks. A rank receives the values once and sends them to
// each of its children.
absl::Status TreeBroadcast(Transport& transport, const TensorList& values, const TreeShape& shape, int root,
                           const Call& call);

// Broadcast down a binomial tree.
absl::Status BinomialBroadcast(Transport& transport, const TensorList& values, int root, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_BROADCAST_H_
