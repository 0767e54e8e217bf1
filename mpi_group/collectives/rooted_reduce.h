#ifndef HOOKE_MPI_GROUP_COLLECTIVES_ROOTED_REDUCE_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_ROOTED_REDUCE_H_

// The reduction of all ranks' values ends on one rank, `root`; the values of the others are unspecified then, as are
// all after an error. Values go up a tree (tree.h) in chunks: a rank reduces its own chunk with those of all its
// children at once and sends the result to its parent while the next ones are coming, a window of them from each child.
//
// Sums of 16-bit values travel as float32 among more than two ranks.

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/collectives/tree.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Up any tree: a rank sends the values once and receives them from each of its children. All ranks pass the same shape.
// Chains inside sub-groups and a binomial tree or a chain of their leaders make it S-Caffe's hierarchical reduce.
absl::Status TreeReduce(Transport& transport, const TensorList& values, ReduceOp op, const TreeShape& shape, int root,
                        const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_ROOTED_REDUCE_H_
