#ifndef HOOKE_MPI_GROUP_COLLECTIVES_PAIRWISE_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_PAIRWISE_H_

// Pairwise collectives: every rank sends to every other one directly. They move as many bytes as a ring, in a single
// step. Values travel in chunks, several of them under way to each peer. The owner of a part reduces the values of all
// ranks at once, in rank order. That suits 16-bit values, whose sums are accumulated in float32 and rounded once. The
// parts are as RingAllGather takes them. After an error the values are unspecified.

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// 1 step; rank r sends parts[j] to each other rank j. After OK parts[r] is reduced on rank r, in rank order; other
// values are unspecified.
absl::Status PairwiseReduceScatter(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                                   ReduceOp op, const Call& call);

// 1 step; rank r sends parts[r] to each other rank and receives all other parts. Values outside the parts stay
// unchanged.
absl::Status PairwiseAllGather(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                               const Call& call);

// PairwiseReduceScatter of even parts, then PairwiseAllGather. 2 steps; each rank sends 2(n-1)/n of the values. After
// OK all ranks hold bitwise the same reduction, made in rank order.
absl::Status PairwiseAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_PAIRWISE_H_
