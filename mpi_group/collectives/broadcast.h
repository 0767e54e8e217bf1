#ifndef HOOKE_MPI_GROUP_COLLECTIVES_BROADCAST_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_BROADCAST_H_

// One rank's values go to all. Sent in chunks, a window of them under way to each child, so that a rank passes on what
// it has while more is coming. `root` is a rank. After an error the values of all ranks but the root are unspecified.
//
// Scattering the values and gathering them everywhere (van de Geijn) is not among them: each rank would send and
// receive up to twice the values where a chain sends and receives them once.

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/collectives/tree.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Down any tree: a rank receives the values once and sends them to each of its children. All ranks pass the same shape.
absl::Status TreeBroadcast(Transport& transport, const TensorList& values, const TreeShape& shape, int root,
                           const Call& call);

// Down a binomial tree.
absl::Status BinomialBroadcast(Transport& transport, const TensorList& values, int root, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_BROADCAST_H_
