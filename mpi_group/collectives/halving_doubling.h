#ifndef HOOKE_MPI_GROUP_COLLECTIVES_HALVING_DOUBLING_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_HALVING_DOUBLING_H_

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Halving-doubling all-reduce (Rabenseifner, 2004): pairs exchange halves of what they still have to reduce, at half
// the distance each time, then the reduced parts go back the same way. 2 log2 n steps; each rank sends 2(n-1)/n of the
// values: the ring's bytes in fewer steps. Where n is no power of two, some ranks hand all their values to a neighbour
// first and get the result from it last: two steps and twice the values more. Sums of 16-bit values travel as float32
// among more than two ranks.
//
// After OK all ranks hold bitwise the same reduction, for each value is reduced on one rank and then copied. After an
// error the values are unspecified.
absl::Status HalvingDoublingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_HALVING_DOUBLING_H_
