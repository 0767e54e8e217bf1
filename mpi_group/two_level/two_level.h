#ifndef HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_H_
#define HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_H_

// Collectives of several nodes: through shared memory inside a node, by messages between nodes, so that each byte
// crosses a node's link once per direction, however many ranks the node has. h is the number of nodes.
//
// Sums and means of 16-bit values are float32 from the ranks of a node on and rounded once, where they are whole: they
// cross a link as float32, their results as 16 bits.
//
// Nodes may have different numbers of ranks; the drivers of a node are its first ranks, as many on each node.

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/node/node_collectives.h"
#include "mpi_group/node/shared_arena.h"
#include "mpi_group/operation.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/topology.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

struct TwoLevelCall {
  // Inside the node.
  NodeCall node;
  const SharedArena* arena;  // Null where the values do not lie in one.
  // Between the nodes: a transport of one rank of each, in the order of the nodes; null where this rank is no driver.
  Transport* between;
  Algorithm algorithm;
  Call call;
  int ranks;  // Of the group.
};

// Reduce-scatter inside the node, so that driver i has slice i of `drivers`; all-reduce of slice i among the i-th
// drivers of all nodes; all-gather inside the node. With a ring a node sends 2(h-1)/h of the values, 3(h-1)/h where
// their sums are float32. Where the nodes form a ring, all three go on at once, chunk by chunk, so that links do not
// rest while a node works: with values in an arena, and with others that are no such sums on nodes whose ranks all are
// drivers.
absl::Status TwoLevelAllReduce(const TwoLevelCall& call, const TensorList& values, ReduceOp op, int drivers);

// The root to one rank of each other node, each of them to all of its node. The root is the driver of its own node;
// `driver` is that of this rank's node, as the node counts; `root_node` the root's node.
absl::Status TwoLevelBroadcast(const TwoLevelCall& call, const TensorList& values, int driver, int root_node);

// The other way. For 16-bit values the reduction is a minimum or a maximum.
absl::Status TwoLevelReduce(const TwoLevelCall& call, const TensorList& values, ReduceOp op, int driver, int root_node);

// Whose parts of the values are on which node.
struct NodesParts {
  absl::Span<const ValueRange> parts;  // As for Group::ReduceScatter.
  const Nodes& nodes;
  int node;  // This rank's.
};

// All-gather inside the node; then the i-th of `drivers` sends slice i of what its node has to the i-th drivers of all
// other nodes; all-gather of what came inside the node. A node sends each of its values to the others once.
absl::Status TwoLevelAllGather(const TwoLevelCall& call, const TensorList& values, const NodesParts& where,
                               int drivers);

// The other way, float32 sums being twice as many bytes; beside its own part a rank may end with those of its node's
// other ranks.
absl::Status TwoLevelReduceScatter(const TwoLevelCall& call, const TensorList& values, const NodesParts& where,
                                   ReduceOp op, int drivers);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_H_
