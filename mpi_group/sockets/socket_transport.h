#ifndef HOOKE_MPI_GROUP_SOCKETS_SOCKET_TRANSPORT_H_
#define HOOKE_MPI_GROUP_SOCKETS_SOCKET_TRANSPORT_H_

// A Transport whose messages between nodes travel over TCP connections of its own, both ways at once and straight from
// and into the caller's memory. Between ranks of one node they go through the transport that it is made over, as do
// notices and the settlement of failures. Used by groups/group_nodes.cc.
//
// A message that is sent is done when the kernel has taken it, which carries it on while this rank is at other work.
// A message of another call, or of another size, than its receiver expects is INVALID_ARGUMENT as soon as it comes.
//
// Notices are looked for after a call's first send, not before it: the answer is on its way meanwhile, and what goes to
// a rank that has given up ends in its kernel, not in its memory. Of the calls of one millisecond only one does so; a
// rank that waits for longer than that looks anyway. IsDone and StartSend, where they find a connection ended, listen
// for 0.2 s for what its peer said of it.

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/sockets/file_descriptor.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// For how long a rank that waits asks its sockets again and again, from when bytes last moved, before it sleeps until
// the kernel wakes it: that takes longer than most answers, above all on virtual machines. Among ranks that have a core
// each it costs little; else it takes time from those that are waited for.
absl::Duration SocketPatienceFor(bool enough_cores);

class SocketTransport : public Transport {
 public:
  // Before this is called: as for too few cores.
  virtual void SetPatience(absl::Duration patience) = 0;
};

// connections[r] is a connected, non-blocking TCP socket to rank r, or none: then `transport` carries the messages.
// That outlives the new one and is used by no one else meanwhile.
std::unique_ptr<SocketTransport> MakeSocketTransport(Transport& transport, std::vector<FileDescriptor> connections);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_SOCKET_TRANSPORT_H_
