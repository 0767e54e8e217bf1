#ifndef HOOKE_MPI_GROUP_COLLECTIVES_REFERENCE_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_REFERENCE_H_

// The obvious all-reduce: gather at rank 0, reduce in rank order, send to all. What the fast ones are tested against,
// and for a few values among many ranks itself quick, for nothing but the number of messages in a row counts then.

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// 1 + ceil(log2 n) messages in a row; rank 0 receives all values of all other ranks, and has room for them. After OK
// all ranks hold bitwise the same. After an error the values are unspecified.
absl::Status ReferenceAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_REFERENCE_H_
