#ifndef HOOKE_MPI_GROUP_GROUPS_GROUP_NODES_H_
#define HOOKE_MPI_GROUP_GROUPS_GROUP_NODES_H_

// The set-up of a group. Its ranks learn who shares a node, whether ranks have cores enough, and the tuning of rank 0.
// They set up the memory in which the ranks of a node meet, connections between nodes, and transports over some of the
// ranks. A part of TransportGroup.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/choose_algorithm.h"
#include "mpi_group/node/node_meeting.h"
#include "mpi_group/node/peer_processes.h"
#include "mpi_group/node/shared_arena.h"
#include "mpi_group/node/shared_memory.h"
#include "mpi_group/sockets/socket_transport.h"
#include "mpi_group/transport/topology.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

class GroupNodes {
 public:
  // Makes this rank's part of the set-up. Collective. `identity` is NodeIdentity() or a name in its place. All ranks
  // use rank 0's tuning. `transport` must outlive the object and is used only through it. If the ranks of some node
  // cannot share memory, no rank uses shared memory, and why_not_shared() says why. If the tuning allows sockets
  // between nodes but there are none, why_no_sockets() says why. `addresses` is GroupOptions::addresses.
  static absl::StatusOr<std::unique_ptr<GroupNodes>> Gather(Transport& transport, const std::string& identity,
                                                            const Tuning& tuning, absl::Time deadline,
                                                            absl::Span<const std::string> addresses = {});

  const Topology& topology() const { return topology_; }
  const Tuning& tuning() const { return tuning_; }
  const std::string& why_not_shared() const { return why_not_shared_; }
  const std::string& why_no_sockets() const { return why_no_sockets_; }

  // The transport of all ranks; it uses sockets between nodes if these are connected.
  Transport& transport() { return transport_; }

  const Nodes& nodes() const { return nodes_; }
  int node() const { return nodes_.node_of_rank[transport_.rank()]; }
  int NodeOf(int rank) const { return nodes_.node_of_rank[rank]; }
  // The index of a rank among the ranks of its own node.
  int LocalRank(int rank) const;

  // Null if memory is not shared.
  NodeMeeting* meeting() { return meeting_.get(); }
  // A transport over the ranks that have this rank's number i in their nodes, one rank of each node. Null if some node
  // has no i-th rank, or if there is only one node.
  Transport* drivers() { return drivers_.get(); }
  // A transport over the root and the first rank of each other node, in the order of the nodes. Null on a rank that is
  // none of these.
  Transport* LeadersFor(int root);
  // The local rank of this node's leader: the root on its own node, else 0.
  int LocalLeaderFor(int root) const { return NodeOf(root) == node() ? LocalRank(root) : 0; }

  // An arena and the memory that it lies in.
  struct Arena {
    std::unique_ptr<SharedMemory> memory;
    std::unique_ptr<SharedArena> arena;
  };
  // Collective: makes an arena in memory that the ranks of each node share. Null on all ranks if one node has no room;
  // *why then says so. `number` is the same on all ranks, and different for all arenas in which the group can work.
  absl::StatusOr<std::unique_ptr<Arena>> NewArena(uint64_t bytes, uint64_t number, absl::Time deadline,
                                                  std::string* why);

 private:
  GroupNodes(Transport& transport, std::unique_ptr<SocketTransport> sockets, Nodes nodes);

  const std::vector<int>& LocalRanks() const { return nodes_.ranks_of_node[node()]; }
  // Makes memory that all ranks of a node share; null on all ranks of the group if one node cannot.
  absl::StatusOr<std::unique_ptr<SharedMemory>> ShareMemory(uint64_t bytes, absl::Time deadline, std::string* why);
  absl::Status SetUpMeeting(absl::Time deadline);
  // Tells the ranks of the node about each other's processes through the meeting, so that each sees when another
  // process ends. Returns the number of cores on which some rank of the node may run.
  absl::StatusOr<int> Introduce(absl::Duration limit);

  const std::unique_ptr<SocketTransport> sockets_;  // Null if the given transport carries all messages.
  Transport& transport_;
  const Nodes nodes_;
  const std::unique_ptr<Transport> local_;
  Topology topology_;
  Tuning tuning_;
  std::string why_not_shared_;
  std::string why_no_sockets_;
  std::unique_ptr<SharedMemory> memory_;
  PeerProcesses peers_;  // Has one process for each rank of the node, once the ranks know each other's processes.
  std::unique_ptr<NodeMeeting> meeting_;
  std::unique_ptr<Transport> drivers_;
  std::map<int, std::unique_ptr<Transport>> leaders_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUPS_GROUP_NODES_H_
