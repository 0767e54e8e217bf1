#ifndef HOOKE_MPI_GROUP_SOCKETS_SOCKET_MESH_H_
#define HOOKE_MPI_GROUP_SOCKETS_SOCKET_MESH_H_

// Makes TCP connections between ranks of a group that are on different nodes, when the group is set up. The group's
// transport carries addresses, ports and a random token. Each end of a connection must show the other that token. So no
// stranger who finds the port gets into the group, and no other program that happens to listen on such a port is taken
// for a rank.
//
// A rank connects to the ranks of its circle that are on other nodes. In a group of up to kAllPairsRanks ranks there is
// one circle: all ranks. In a larger group the i-th ranks of all nodes are a circle, if two-level collectives can use
// it: these ranks drive them (two_level/two_level.h). With h nodes a rank then has at most h-1 connections, however
// many ranks the group has. Without two-level collectives all ranks are one circle again.
//
// If nodes share several equal networks, the i-th rank of a node uses the i-th of them, and so on in a circle. So the
// drivers of two-level collectives use them all.
//
// The cost: c is the size of a circle, a record has 11 bytes and 10 for each IPv4 address (endpoint.h). A rank receives
// c records and some 100 other bytes. It sends up to 6 ceil(log2 n) messages, and 11 on average. Nothing goes from
// every rank to every other one. Only the ranks of a circle connect in pairs.
//
// The token is not encrypted, so a program that takes a rank's address on purpose could read it. Such hosts are
// trusted, as MPI trusts them.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/sockets/file_descriptor.h"
#include "mpi_group/sockets/host_addresses.h"
#include "mpi_group/transport/topology.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Returns the circle of a rank, in the same order on all its ranks. `two_level`: the group uses two-level collectives.
std::vector<int> CircleOf(int rank, const Nodes& nodes, bool two_level);

struct MeshOptions {
  std::string identity;                // NodeIdentity(). Ranks with equal ones connect by loopback.
  std::vector<HostAddress> addresses;  // OwnAddresses(), or some of them.
  bool chosen = false;                 // A person has chosen these addresses.
  // The time allowed for connecting; at most half of the time until the deadline is taken. If a rank cannot be reached,
  // the others wait this long before they go on without sockets.
  absl::Duration patience = absl::Seconds(10);
};

struct Mesh {
  // Indexed by rank; non-blocking, without Nagle's delay. There is none to ranks outside the circle, to this rank
  // itself or to ranks of its own node. If why_not is set, there are none at all.
  std::vector<FileDescriptor> connections;
  std::string why_not;  // For the log: why there are no connections. Set on all ranks if on any.
};

// Collective. The circles of two ranks are equal or have no rank in common. If this process may not open enough files,
// its soft limit is raised to the hard one. Errors are those of the transport.
absl::StatusOr<Mesh> ConnectMesh(Transport& transport, const Nodes& nodes, const std::vector<int>& circle,
                                 const MeshOptions& options, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_SOCKET_MESH_H_
