#ifndef HOOKE_MPI_GROUP_COLLECTIVES_REPLICAS_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_REPLICAS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/data_type.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// All-reduce of a group whose ranks contribute several vectors each: for a caller that keeps several models, or several
// copies of one, in one process. hooke-rank does not: it has one model, whose vector goes to Group::AllReduce. For one
// vector per GPU there is NcclGroup::AllReduceReplicas (cuda/nccl_group.h).
//
// All k lists of all n ranks are reduced, kMean being over k * n, and every list ends with the result. The rank's own
// lists are reduced first, so that the group moves one list per rank. Sums of 16-bit values are accumulated in float32
// throughout, in memory of 4 bytes per value that each such call takes for itself.
//
// The lists are at least one, as many on every rank, of one type and size; they need not have the same pieces, and do
// not overlap. The ranks compare that first, by an all-reduce of some bytes. INVALID_ARGUMENT on all ranks, and nothing
// has changed, if any rank's lists do not fit each other or the other ranks', or its `op` differs; else the errors of
// Group::AllReduce, after which the values are unspecified.
absl::Status AllReduceReplicas(Group& group, absl::Span<const TensorList> replicas, ReduceOp op);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_REPLICAS_H_
