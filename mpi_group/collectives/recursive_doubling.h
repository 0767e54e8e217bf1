#ifndef HOOKE_MPI_GROUP_COLLECTIVES_RECURSIVE_DOUBLING_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_RECURSIVE_DOUBLING_H_

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Recursive doubling all-reduce (Thakur, Rabenseifner and Gropp, 2005): in step s ranks whose numbers differ in bit s
// exchange all their values. log2 n steps; each rank sends all values log2 n times, so it suits few values. If n is no
// power of two, some ranks first hand their values to a neighbour and at the end get the result from it: two more
// steps. Among more than two ranks sums of 16-bit values travel as float32.
//
// After OK all ranks hold bitwise the same reduction, because both ranks of a pair reduce in the same order: the lower
// one's values, then the higher one's. After an error the values are unspecified.
absl::Status RecursiveDoublingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_RECURSIVE_DOUBLING_H_
