#ifndef HOOKE_MPI_GROUP_COLLECTIVES_MESSAGE_COLLECTIVES_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_MESSAGE_COLLECTIVES_H_

// Calls the message-based collective that implements an Algorithm. If the algorithm does not implement the operation, a
// ring or a binomial tree does. The contracts are those of the algorithms' own headers.

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/operation.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

absl::Status AllReduceBy(Algorithm algorithm, Transport& transport, const TensorList& values, ReduceOp op,
                         const Call& call);
absl::Status ReduceBy(Algorithm algorithm, Transport& transport, const TensorList& values, ReduceOp op, int root,
                      const Call& call);
absl::Status ReduceScatterBy(Algorithm algorithm, Transport& transport, const TensorList& values,
                             absl::Span<const ValueRange> parts, ReduceOp op, const Call& call);
absl::Status AllGatherBy(Algorithm algorithm, Transport& transport, const TensorList& values,
                         absl::Span<const ValueRange> parts, const Call& call);
absl::Status BroadcastBy(Algorithm algorithm, Transport& transport, const TensorList& values, int root,
                         const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_MESSAGE_COLLECTIVES_H_
