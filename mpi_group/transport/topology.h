#ifndef HOOKE_MPI_GROUP_TRANSPORT_TOPOLOGY_H_
#define HOOKE_MPI_GROUP_TRANSPORT_TOPOLOGY_H_

// Which ranks of a group share a node, that is, its memory and its network card. Ranks tell each other once, when a
// group starts (collectives/texts.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hooke {

// Identifies this process's node: the running kernel, the network namespace, /dev/shm and the user. Processes with
// equal identities can share memory and have the same network card.
std::string NodeIdentity();
// A 64-bit hash of an identity, the same in all builds of a program.
uint64_t HashOfIdentity(const std::string& identity);

// The nodes of a group, numbered in the order of their lowest ranks.
struct Nodes {
  std::vector<int> node_of_rank;
  std::vector<std::vector<int>> ranks_of_node;  // Ascending.
};
Nodes NodesFrom(const std::vector<std::string>& identity_of_rank);
// Returns the place of a rank among those of its node, from 0.
int PlaceOf(int rank, const Nodes& nodes);

// The nodes of consecutive ranks, in few bytes: `each` ranks on node `first`, `each` on the next node, and so on over
// `nodes` nodes; all that `times` times. With 2 nodes of 3 ranks, {0, 2, 3, 1} means 0 0 0 1 1 1 and {0, 2, 1, 3} means
// 0 1 0 1 0 1. It travels as raw bytes, because the ranks of a group run the same program.
struct NodePattern {
  uint32_t first = 0;
  uint32_t nodes = 0;
  uint32_t each = 0;
  uint32_t times = 0;
};

// Describes the nodes of all ranks. If all nodes have equally many ranks, blocks of ranks take one pattern, and so does
// round robin. No placement takes more than one pattern per rank.
std::vector<NodePattern> PatternsOf(const std::vector<int>& node_of_rank);
// The reverse. INTERNAL if the patterns do not describe so many ranks, or if their nodes are not numbered as in Nodes.
absl::StatusOr<Nodes> NodesFrom(absl::Span<const NodePattern> patterns, int ranks);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_TOPOLOGY_H_
