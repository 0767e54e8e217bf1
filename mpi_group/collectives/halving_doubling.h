#ifndef HOOKE_MPI_GROUP_COLLECTIVES_HALVING_DOUBLING_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_HALVING_DOUBLING_H_

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Halving-doubling all-reduce (Rabenseifner, 2004). First comes a reduce-scatter: in each step pairs of ranks exchange
// halves of the values that they still have to reduce. The distance between the two ranks halves from step to step.
// Then an all-gather brings the reduced parts back through the same steps in reverse. There are 2 log2 n steps; each
// rank sends 2(n-1)/n of the values, as in a ring but in fewer steps.
//
// If n is no power of two, some ranks first hand all their values to a neighbour and at the end get the result from it.
// That costs two more steps, in which each of these pairs sends all values once in each direction. Among more than two
// ranks sums of 16-bit values travel as float32.
//
// After OK all ranks hold bitwise the same reduction, because each value is reduced on one rank and then copied. After
// an error the values are unspecified.
absl::Status HalvingDoublingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_HALVING_DOUBLING_H_
