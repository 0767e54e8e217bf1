#ifndef HOOKE_MPI_GROUP_GROUPS_GROUP_NODES_H_
#define HOOKE_MPI_GROUP_GROUPS_GROUP_NODES_H_

// The set-up of a group. Its ranks learn who shares a node, whether ranks have cores enough, and the tuning of rank 0.
// They set up the memory in which the ranks of a node meet, connections between nodes, and transports over some of the
// ranks. A part of TransportGroup.
//
// The cost of the set-up, with n ranks on h nodes. Everything travels along binomial trees, over all ranks, the ranks
// of a node, or the i-th ranks of all nodes (collectives/texts.h). A rank sends at most 16 ceil(log2 n) messages, and
// at most 28 on average, and two more if the tuning leaves the carrier open. On average it sends some 200 bytes, the
// tuning, 4 log2 n bytes about the nodes, and a record of 21 bytes or more for each node to which it connects
// (sockets/socket_mesh.h). Rank 0 receives 8n bytes and sends log2 n times as many as others. Where ranks lie neither
// in blocks nor round robin, each rank sends up to 16n bytes more. No rank sends a message to each of the others.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/choose_algorithm.h"
#include "mpi_group/group.h"
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
  // Makes this rank's part of the set-up, until `deadline`. Collective. `transport` must outlive the
  // object and is used only through it. If the ranks of some node cannot share memory, no rank uses shared memory, and
  // why_not_shared() says why. If the tuning allows sockets between nodes but there are none, why_no_sockets() says
  // why. `memory` is working memory of any size. After an error it must stay until `transport` is destroyed.
  static absl::StatusOr<std::unique_ptr<GroupNodes>> Gather(Transport& transport, const GroupOptions& options,
                                                            std::vector<char>& memory, absl::Time deadline);

  const Topology& topology() const { return topology_; }
  const Tuning& tuning() const { return tuning_; }
  const std::string& why_not_shared() const { return why_not_shared_; }
  const std::string& why_no_sockets() const { return why_no_sockets_; }

  // The transport of all ranks. Messages go over sockets between the ranks that are connected (CircleOf), and over the
  // given transport between others.
  Transport& transport() { return sockets_ != nullptr ? *sockets_ : transport_; }

  const Nodes& nodes() const { return nodes_; }
  int node() const { return NodeOf(transport_.rank()); }
  int NodeOf(int rank) const { return nodes_.node_of_rank[rank]; }
  // The index of a rank among the ranks of its own node.
  int LocalRank(int rank) const { return PlaceOf(rank, nodes_); }

  // Null if memory is not shared.
  NodeMeeting* meeting() { return meeting_.get(); }
  // A transport over the ranks that have this rank's number i in their nodes, one rank of each node. Null if some node
  // has no i-th rank, or if there is only one node.
  Transport* drivers() { return drivers_.get(); }
  // A transport over the leaders for this root, one of each node, in the order of the nodes. Null on other ranks. The
  // root leads its own node. On other nodes the rank with the same local rank leads, since it is in the root's circle
  // (sockets/socket_mesh.h). On a node that has too few ranks the first one leads.
  Transport* LeadersFor(int root);
  // The local rank of this node's leader.
  int LocalLeaderFor(int root) const;

  // An arena and the memory that it lies in.
  struct ArenaInMemory {
    std::unique_ptr<SharedMemory> memory;
    std::unique_ptr<SharedArena> arena;
  };
  // Collective: makes an arena in memory that the ranks of each node share. Null on all ranks if one node has no room;
  // *why then says so. `number` is the same on all ranks, and different for all arenas in which the group can work.
  absl::StatusOr<std::unique_ptr<ArenaInMemory>> NewArena(uint64_t bytes, uint64_t number, absl::Time deadline,
                                                          std::string* why);

 private:
  GroupNodes(Transport& transport, Nodes nodes);

  const std::vector<int>& LocalRanks() const { return nodes_.ranks_of_node[node()]; }
  // Makes memory that all ranks of a node share; null on all ranks of the group if one node cannot.
  absl::StatusOr<std::unique_ptr<SharedMemory>> ShareMemory(uint64_t bytes, absl::Time deadline, std::string* why);
  absl::Status SetUpMeeting(absl::Time deadline);
  // Connects the nodes by sockets if there are several, the tuning allows it, and nothing prevents it.
  absl::Status ConnectNodes(const GroupOptions& options, std::vector<char>& memory, absl::Time deadline);
  // Gives the sockets up if a rank has an RDMA device and MPI turns out to be faster.
  absl::Status ChooseCarrier(const std::string& rdma_devices, std::vector<char>& memory, absl::Time deadline);
  // Makes the transports over some of the ranks.
  void Divide();
  // Tells the ranks of the node about each other's processes through the meeting, so that each sees when another
  // process ends. Returns the number of cores on which some rank of the node may run.
  absl::StatusOr<int> Introduce(absl::Duration limit);

  Transport& transport_;  // The given one.
  const Nodes nodes_;
  std::unique_ptr<SocketTransport> sockets_;  // Null if the given transport carries all messages.
  std::unique_ptr<Transport> local_;          // Over the ranks of this node.
  Topology topology_;
  bool enough_cores_ = false;  // This node has a core for each of its ranks, and they share memory.
  Tuning tuning_;
  std::string why_not_shared_;
  std::string why_no_sockets_;
  std::unique_ptr<SharedMemory> memory_;
  PeerProcesses peers_;  // Has one process for each rank of the node, once the ranks know each other's processes.
  std::unique_ptr<NodeMeeting> meeting_;
  std::unique_ptr<Transport> drivers_;
  std::map<int, std::unique_ptr<Transport>> leaders_;  // The key is the root's local rank.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUPS_GROUP_NODES_H_
