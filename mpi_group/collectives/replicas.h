#ifndef HOOKE_MPI_GROUP_COLLECTIVES_REPLICAS_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_REPLICAS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/data_type.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// All-reduce for a process that keeps several models, or several copies of one, each with its own vector. hooke-rank
// has one model and calls Group::AllReduce instead. For one vector per GPU there is NcclGroup::AllReduceReplicas
// (cuda/nccl_group.h).
//
// Reduces all k lists of all n ranks; every list ends with the result, and kMean divides by k * n. A rank reduces its
// own lists first, so that the group moves only one list per rank. Sums of 16-bit values are accumulated in float32
// throughout; each such call allocates 4 bytes per value for them.
//
// Every rank passes the same number of lists, at least one. All lists have one type and size, but may be cut into
// pieces differently; they do not overlap. The ranks compare this first, by a small all-reduce. If any rank's lists do
// not fit each other or those of other ranks, or `op` differs, all ranks return INVALID_ARGUMENT and nothing has
// changed. Other errors are those of Group::AllReduce and leave the values unspecified.
absl::Status AllReduceReplicas(Group& group, absl::Span<const TensorList> replicas, ReduceOp op);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_REPLICAS_H_
