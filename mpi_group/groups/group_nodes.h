#ifndef HOOKE_MPI_GROUP_GROUPS_GROUP_NODES_H_
#define HOOKE_MPI_GROUP_GROUPS_GROUP_NODES_H_

// What the ranks of a group learn about each other when they first meet: who shares a node, how many cores they have,
// by which tuning they choose algorithms; and what they set up then: the memory through which the ranks of a node meet,
// connections between nodes, and transports of some of the ranks. Part of TransportGroup.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/choose_algorithm.h"
#include "mpi_group/node/node_meeting.h"
#include "mpi_group/node/shared_arena.h"
#include "mpi_group/node/shared_memory.h"
#include "mpi_group/sockets/socket_transport.h"
#include "mpi_group/transport/topology.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

class GroupNodes {
 public:
  // Collective. `identity` is NodeIdentity() or a stand-in for it; rank 0's tuning is every rank's. `transport`
  // outlives the object and is used only through it. Where the ranks of a node can't share memory, why_not_shared()
  // says why, and no rank uses any; where nodes are not connected by sockets though the tuning allows it,
  // why_no_sockets().
  static absl::StatusOr<std::unique_ptr<GroupNodes>> Gather(Transport& transport, const std::string& identity,
                                                            const Tuning& tuning, absl::Time deadline);

  const Topology& topology() const { return topology_; }
  const Tuning& tuning() const { return tuning_; }
  const std::string& why_not_shared() const { return why_not_shared_; }
  const std::string& why_no_sockets() const { return why_no_sockets_; }

  // Of all ranks; by sockets between nodes where they are connected so.
  Transport& transport() { return transport_; }

  const Nodes& nodes() const { return nodes_; }
  int node() const { return nodes_.node_of_rank[transport_.rank()]; }
  int NodeOf(int rank) const { return nodes_.node_of_rank[rank]; }
  // A rank as its own node counts.
  int LocalRank(int rank) const;

  // Null where memory is not shared.
  NodeMeeting* meeting() { return meeting_.get(); }
  // Of the i-th ranks of all nodes, this rank being the i-th of its own; null from topology().smallest_node on.
  Transport* drivers() { return drivers_.get(); }
  // Of the root and of the first rank of each other node, in the order of the nodes; null on all other ranks.
  Transport* LeadersFor(int root);
  // The leader of this rank's node, as the node counts.
  int LocalLeaderFor(int root) const { return NodeOf(root) == node() ? LocalRank(root) : 0; }

  // Collective: memory that the ranks of each node share. Null, on all ranks, if one node has no room; *why says so.
  // `number` tells the arenas of a group apart, those lent to it too; the same on all ranks.
  struct Arena {
    std::unique_ptr<SharedMemory> memory;
    std::unique_ptr<SharedArena> arena;
  };
  absl::StatusOr<std::unique_ptr<Arena>> NewArena(uint64_t bytes, uint64_t number, absl::Time deadline,
                                                  std::string* why);

 private:
  GroupNodes(Transport& transport, std::unique_ptr<SocketTransport> sockets, Nodes nodes);

  const std::vector<int>& LocalRanks() const { return nodes_.ranks_of_node[node()]; }
  // The same memory on all ranks of a node, or null on all ranks of the group.
  absl::StatusOr<std::unique_ptr<SharedMemory>> ShareMemory(uint64_t bytes, absl::Time deadline, std::string* why);
  absl::Status SetUpMeeting(absl::Time deadline);
  // Through the meeting: the cores that some rank of the node may run on.
  absl::StatusOr<int> CoresOfNode(absl::Duration limit);

  const std::unique_ptr<SocketTransport> sockets_;  // Null where MPI carries all.
  Transport& transport_;
  const Nodes nodes_;
  const std::unique_ptr<Transport> local_;
  Topology topology_;
  Tuning tuning_;
  std::string why_not_shared_;
  std::string why_no_sockets_;
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<NodeMeeting> meeting_;
  std::unique_ptr<Transport> drivers_;
  std::map<int, std::unique_ptr<Transport>> leaders_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUPS_GROUP_NODES_H_
