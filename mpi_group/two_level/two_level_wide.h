#ifndef HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_WIDE_H_
#define HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_WIDE_H_

// Sums and means of 16-bit values in two levels. The sums of a node's ranks are float32, in the call's scratch, and are
// added as float32 between nodes. Complete sums are rounded, once, and from then on copied. A part of two_level.cc. h
// is the number of nodes, V the bytes of the values.
//
// Drivers are the first ranks of each node. Only they talk to other nodes (two_level.h). parts[i] is the slice of the
// node's i-th rank. It is empty if that rank is no driver.

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/two_level/two_level.h"

namespace hooke {

// Does an all-reduce without its last stage, the all-gather inside each node. After OK each driver has the sums of its
// slice in its values. If call.algorithm can reduce-scatter, a node sends 3(h-1)/h V: float32 to the rank that rounds,
// 16 bits from there. Other algorithms send float32 in both directions.
absl::Status WideAllReduce(const TwoLevelCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                           ReduceOp op);

// All-reduce to all ranks by a ring between nodes, for values in an arena. Chunk by chunk a driver adds its node's
// values before it sends them, and gives the node the results. All ranks of a node call it; a rank that is no driver
// has an empty slice.
absl::Status WideArenaRingAllReduce(const TwoLevelCall& call, const TensorList& slice, ReduceOp op);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_WIDE_H_
