#ifndef HOOKE_MPI_GROUP_SOCKETS_SOCKET_MESH_H_
#define HOOKE_MPI_GROUP_SOCKETS_SOCKET_MESH_H_

// TCP connections between all ranks of a group that are on different nodes, made when they first meet. Addresses, ports
// and a random token go over the group's transport; each end of a connection shows the other that token before it
// counts, so that no stranger who finds the port gets into the group, and no other program that happens to listen where
// a rank was expected is taken for it. One that listens there on purpose sees the token, which is not encrypted: hosts
// that can take a rank's address are trusted, as MPI trusts them. Used by socket_transport.cc.

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
  std::string identity;                // NodeIdentity(): ranks that have the same one reach each other by loopback.
  std::vector<HostAddress> addresses;  // OwnAddresses(), or a part of them.
  bool rdma = false;                   // HasRdmaDevice().
  // Also where a rank has such a device; the same on all ranks.
  bool even_with_rdma = false;
  // For connecting; a rank that cannot be reached takes all of it.
  absl::Duration patience = absl::Seconds(10);
};

struct Mesh {
  // By rank; non-blocking, without Nagle's delay. None to this rank itself and to those of its own node; none at all
  // where why_not is set.
  std::vector<FileDescriptor> connections;
  std::string why_not;  // Set on all ranks, if on any. For people.
};

// Collective. The transport's errors.
absl::StatusOr<Mesh> ConnectMesh(Transport& transport, const Nodes& nodes, const MeshOptions& options,
                                 absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_SOCKET_MESH_H_
