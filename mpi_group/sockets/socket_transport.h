#ifndef HOOKE_MPI_GROUP_SOCKETS_SOCKET_TRANSPORT_H_
#define HOOKE_MPI_GROUP_SOCKETS_SOCKET_TRANSPORT_H_

// A Transport that sends messages between nodes over its own TCP connections, both ways at once and straight from and
// into the caller's memory. Messages inside a node, notices and the settlement of failures go through the inner
// transport that it is made over.
//
// A send is done when the kernel has taken all bytes; the kernel carries them on while this rank does other work. A
// message of another call or size than its receiver expects is INVALID_ARGUMENT as soon as it comes.
//
// A wait looks only at the connections over which this rank has messages under way. Now and then it asks the kernel
// which others have bytes to read, to see whether a message has come that no call can take.
//
// A call checks for notices (Transport::CheckNotices) after its first send, not before it. So the message is already on
// its way during the check. If its receiver has given up, the message ends in the receiver's kernel and not in its
// memory. At most one call per millisecond makes this check; longer waits check anyway. If IsDone or StartSend find a
// connection closed, they wait up to 0.2 s for the notice that explains it.

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/sockets/file_descriptor.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// How long a waiting rank polls its sockets after bytes last moved, before it sleeps until the kernel wakes it. Waking
// up takes longer than most answers, above all on virtual machines. Polling costs little if every rank has its own
// core; otherwise it takes time from the ranks that are waited for.
absl::Duration SocketPatienceFor(bool enough_cores);

class SocketTransport : public Transport {
 public:
  // Sets how long a wait polls. The default is SocketPatienceFor(/*enough_cores=*/false).
  virtual void SetPatience(absl::Duration patience) = 0;
};

// connections[r] is a connected, non-blocking TCP socket to rank r; if there is none, `transport` carries the messages.
// `transport` must outlive the result, and nobody else uses it meanwhile. The result opens one more file; if it cannot,
// its calls return that error.
std::unique_ptr<SocketTransport> MakeSocketTransport(Transport& transport, std::vector<FileDescriptor> connections);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_SOCKET_TRANSPORT_H_
