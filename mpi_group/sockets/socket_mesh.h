#ifndef HOOKE_MPI_GROUP_SOCKETS_SOCKET_MESH_H_
#define HOOKE_MPI_GROUP_SOCKETS_SOCKET_MESH_H_

// Makes TCP connections between all ranks of a group that are on different nodes, when the group is set up. The group's
// transport carries addresses, ports and a random token. Each end of a connection must show the other that token. So no
// stranger who finds the port gets into the group, and no other program that happens to listen on such a port is taken
// for a rank.
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

struct MeshOptions {
  std::string identity;                // NodeIdentity(). Ranks with equal ones connect by loopback.
  std::vector<HostAddress> addresses;  // OwnAddresses(), or some of them.
  bool rdma = false;                   // HasRdmaDevice(). If any rank has one, no connections are made.
  // Makes connections even if a rank has an RDMA device. The same on all ranks.
  bool even_with_rdma = false;
  // The time allowed for connecting; at most half of the time until the deadline is taken. If a rank cannot be reached,
  // the others wait this long before they go on without sockets.
  absl::Duration patience = absl::Seconds(10);
};

struct Mesh {
  // Indexed by rank; non-blocking, without Nagle's delay. There is none to this rank itself or to ranks of its own
  // node. If why_not is set, there are none at all.
  std::vector<FileDescriptor> connections;
  std::string why_not;  // For the log: why there are no connections. Set on all ranks if on any.
};

// Collective. Errors are those of the transport.
absl::StatusOr<Mesh> ConnectMesh(Transport& transport, const Nodes& nodes, const MeshOptions& options,
                                 absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_SOCKET_MESH_H_
