#ifndef HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_WIDE_H_
#define HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_WIDE_H_

// Sums and means of 16-bit values in two levels: the sums of a node's ranks are float32, in the call's scratch; between
// nodes they are added as float32; where they are whole they are rounded, once, and from there on copied. Part of
// two_level.cc, which says what a driver and its slice are. h is the number of nodes, V the bytes of the values.
//
// parts[i] is the slice of the node's i-th rank, empty where that is no driver.

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/two_level/two_level.h"

namespace hooke {

// After OK each driver has the sums of its slice in its values. A node sends 3(h-1)/h V where call.algorithm does
// reduce-scatters: float32 to where it is rounded, 16 bits from there. Others carry float32 both ways.
absl::Status WideAllReduce(const TwoLevelCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                           ReduceOp op);

// The same by a ring between nodes, where the values lie in an arena, all the way to all ranks: chunk by chunk a driver
// adds its node's values before it sends them and gives the node what comes. For all ranks of a node: one that is no
// driver has an empty slice.
absl::Status WideArenaRingAllReduce(const TwoLevelCall& call, const TensorList& slice, ReduceOp op);

// After OK each driver has the sums of nodes_parts[i] of its slice in its values, i being its node. A node sends
// 2(h-1)/h V.
absl::Status WideReduceScatter(const TwoLevelCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                               absl::Span<const ValueRange> nodes_parts, ReduceOp op);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_WIDE_H_
