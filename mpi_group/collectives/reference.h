#ifndef HOOKE_MPI_GROUP_COLLECTIVES_REFERENCE_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_REFERENCE_H_

// The obvious all-reduce: rank 0 gathers the values, reduces them in rank order, and broadcasts the result. Tests
// compare the fast algorithms with it. For very few values on many ranks it is fast itself, as only the number of
// messages in a row counts then.

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// 1 + ceil(log2 n) messages in a row. Rank 0 receives the values of all other ranks and keeps room for them. After OK
// all ranks hold bitwise the same reduction. After an error the values are unspecified.
absl::Status ReferenceAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_REFERENCE_H_
