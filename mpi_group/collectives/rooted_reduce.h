#ifndef HOOKE_MPI_GROUP_COLLECTIVES_ROOTED_REDUCE_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_ROOTED_REDUCE_H_

// Reduces along trees (tree.h): rank `root` ends with the reduction of all ranks' values. The values of the others are
// unspecified then, and all values after an error. Values go up the tree in chunks, with a window of them under way
// from each child. A rank reduces its own chunk with those of all its children at once. It sends the result to its
// parent while the next chunks are coming.
//
// Among more than two ranks sums of 16-bit values travel as float32.

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/collectives/tree.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Reduce up a tree of the given shape, the same on all ranks. A rank sends the values once and receives them from each
// of its children. With chains inside sub-groups, and a binomial tree or a chain of their leaders, it is S-Caffe's
// hierarchical reduce.
absl::Status TreeReduce(Transport& transport, const TensorList& values, ReduceOp op, const TreeShape& shape, int root,
                        const Call& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_ROOTED_REDUCE_H_
