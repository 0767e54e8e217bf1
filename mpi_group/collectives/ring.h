#ifndef HOOKE_MPI_GROUP_COLLECTIVES_RING_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_RING_H_

// Ring all-reduce (Patarasuk and Yuan, 2009): values travel around the ring once to be reduced and once more to be
// shared. Every rank sends only to the next rank and receives only from the previous one. Values travel in chunks, with
// a window of them under way in each direction: a chunk goes on as soon as it is reduced, while others travel.
//
// Among more than two ranks a ring would round sums of 16-bit values at every rank. Such sums go by pairwise.h instead,
// which moves as many bytes. After an error the values are unspecified.

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// n-1 steps; each rank sends all parts but its own, (n-1)/n of the values if they are even. After OK parts[r] of the
// values is reduced on rank r; other values are unspecified. The parts are as RingAllGather takes them.
absl::Status RingReduceScatter(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                               ReduceOp op, const Call& call);

// 2(n-1) steps; each rank sends 2(n-1)/n of the values. The second turn follows the first chunk by chunk, so that no
// link is idle between them. After OK all ranks hold bitwise the same reduction, because each value is reduced along
// one path and then copied.
absl::Status RingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_RING_H_
