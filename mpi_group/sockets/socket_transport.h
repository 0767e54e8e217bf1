#ifndef HOOKE_MPI_GROUP_SOCKETS_SOCKET_TRANSPORT_H_
#define HOOKE_MPI_GROUP_SOCKETS_SOCKET_TRANSPORT_H_

// A Transport whose messages between nodes travel over TCP connections of its own, both ways at once and straight from
// and into the caller's memory. Between ranks of one node they go through the transport that it is made over, as do
// notices and the settlement of failures. Used by group_nodes.cc.
//
// A message that is sent is done when the kernel has taken it, which carries it on while this rank is at other work.
// A message of another call, or of another size, than its receiver expects is INVALID_ARGUMENT as soon as it comes.

#include <memory>
#include <vector>

#include "mpi_group/sockets/file_descriptor.h"
#include "mpi_group/transport.h"

namespace hooke {

// connections[r] is a connected, non-blocking TCP socket to rank r, or none: then `transport` carries the messages.
// That outlives the new one and is used by no one else meanwhile.
std::unique_ptr<Transport> MakeSocketTransport(Transport& transport, std::vector<FileDescriptor> connections);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_SOCKET_TRANSPORT_H_
