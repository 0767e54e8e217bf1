#ifndef HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_H_
#define HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_H_

// Collectives of several nodes in two levels: shared memory inside a node, messages between nodes. What a node sends to
// other nodes does not depend on how many ranks it has. h is the number of nodes.
//
// Sums and means of 16-bit values are kept as float32 and rounded only once, when they are complete. They cross a link
// as float32, and their results as 16 bits.
//
// Drivers are the ranks that talk to other nodes: the first ranks of each node, equally many on each. Nodes may have
// different numbers of ranks.

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
  // The call inside the node.
  NodeCall node;
  const SharedArena* arena;  // Null if the values do not lie in an arena.
  // Between the nodes: a transport over one rank of each, in the order of the nodes; null if this rank takes no part.
  Transport* between;
  Algorithm algorithm;
  Call call;
  int ranks;  // Number of ranks of the group.
};

// All-reduces in three stages. A reduce-scatter inside the node gives driver i slice i of `drivers` slices. The i-th
// drivers of all nodes all-reduce slice i. An all-gather inside the node brings all slices to all its ranks. With a
// ring a node sends 2(h-1)/h of the values, or 3(h-1)/h for sums of 16-bit values.
//
// With a ring all three stages can run at the same time, chunk by chunk, so that links are not idle while a node works.
// For values in an arena they always do. For other values they do unless 16-bit values are summed or some rank is no
// driver.
absl::Status TwoLevelAllReduce(const TwoLevelCall& call, const TensorList& values, ReduceOp op, int drivers);

// Broadcasts in two stages. The root sends to one rank of each other node. Each of these ranks, and the root,
// broadcasts inside its node. `driver` is the local rank that broadcasts inside this rank's node. On the root's node it
// is the root. `root_node` is the node of the root.
absl::Status TwoLevelBroadcast(const TwoLevelCall& call, const TensorList& values, int driver, int root_node);

// Reduces to the root, in the reverse order of TwoLevelBroadcast. For 16-bit values `op` must be kMin or kMax.
absl::Status TwoLevelReduce(const TwoLevelCall& call, const TensorList& values, ReduceOp op, int driver, int root_node);

// The parts of all ranks, and the nodes on which the ranks are.
struct NodesParts {
  absl::Span<const ValueRange> parts;  // Has the form that Group::ReduceScatter takes.
  const Nodes& nodes;
  int node;  // This rank's node.
};

// All-gathers in three stages. The first is an all-gather inside the node. In the second, the i-th of `drivers` sends
// slice i of its node's values to the i-th drivers of all other nodes. The third is an all-gather of the received
// values inside the node. A node sends each of its values to the others once.
absl::Status TwoLevelAllGather(const TwoLevelCall& call, const TensorList& values, const NodesParts& where,
                               int drivers);

// The reverse of TwoLevelAllGather. A rank may also end with the parts of other ranks of its node. For 16-bit values
// `op` must be kMin or kMax.
absl::Status TwoLevelReduceScatter(const TwoLevelCall& call, const TensorList& values, const NodesParts& where,
                                   ReduceOp op, int drivers);

// A barrier in three stages. The ranks of each node meet, then one driver of each node takes part in a dissemination
// barrier, then the ranks of each node meet again.
absl::Status TwoLevelBarrier(const TwoLevelCall& call);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TWO_LEVEL_TWO_LEVEL_H_
