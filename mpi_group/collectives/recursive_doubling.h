#ifndef HOOKE_MPI_GROUP_COLLECTIVES_RECURSIVE_DOUBLING_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_RECURSIVE_DOUBLING_H_

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Recursive doubling all-reduce (Thakur, Rabenseifner and Gropp, 2005): in step s ranks that differ in bit s exchange
// all they have. log2 n steps; each rank sends the values log2 n times: for few values. Where n is no power of two,
// some ranks hand their values to a neighbour first and get the result from it last: two steps more. Sums of 16-bit
// values travel as float32 among more than two ranks.
//
// After OK all ranks hold bitwise the same reduction: both ranks of a pair reduce the lower one's values with the
// higher one's, in this order. After an error the values are unspecified.
absl::Status RecursiveDoublingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_RECURSIVE_DOUBLING_H_
