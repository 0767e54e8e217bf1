#ifndef HOOKE_MPI_GROUP_RING_H_
#define HOOKE_MPI_GROUP_RING_H_

// Ring all-reduce (Patarasuk and Yuan, 2009): values travel once around to be reduced, once more to be shared. Every
// rank sends to the next and receives from the previous one only. Used by TransportGroup for all but tiny lists.

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport.h"

namespace hooke {

// n-1 steps; each rank sends (n-1)/n of the values. After OK slice r of EvenParts(values.size(), n) is reduced on rank
// r; other values are unspecified. After an error all are. For kMean the slice holds the mean.
absl::Status RingReduceScatter(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

// RingReduceScatter, then RingAllGather of the slices: 2(n-1) steps; each rank sends 2(n-1)/n of the values. After OK
// all ranks hold bitwise the same reduction, for each value is reduced along one path and then copied. After an error
// the values are unspecified.
absl::Status RingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_RING_H_
