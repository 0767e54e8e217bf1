#ifndef HOOKE_MPI_GROUP_REDUCE_H_
#define HOOKE_MPI_GROUP_REDUCE_H_

// The arithmetic of reductions, on values of one rank. Pure.

#include "absl/types/span.h"
#include "mpi_group/group.h"

namespace hooke {

// into[i] = into[i] op from[i]; for kMean the sum, which FinishReduction turns into the mean. Sizes are equal, memory
// does not overlap.
void ReduceInto(ReduceOp op, absl::Span<const float> from, absl::Span<float> into);

// What is left to do once all `ranks` values are reduced: for kMean one multiplication by 1/ranks.
void FinishReduction(ReduceOp op, int ranks, absl::Span<float> values);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_H_
