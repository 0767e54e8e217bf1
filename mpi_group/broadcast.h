#ifndef HOOKE_MPI_GROUP_BROADCAST_H_
#define HOOKE_MPI_GROUP_BROADCAST_H_

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport.h"

namespace hooke {

// `root`'s values go to all along a binomial tree: ceil(log2 n) levels; the root sends the values as many times, every
// other rank receives them once. Sent in chunks, so that a rank passes on what it has while more is coming. `root` is a
// rank. After an error the values of all ranks but the root are unspecified.
absl::Status BinomialBroadcast(Transport& transport, const TensorList& values, int root, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_BROADCAST_H_
