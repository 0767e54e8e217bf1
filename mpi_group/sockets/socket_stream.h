#ifndef HOOKE_MPI_GROUP_SOCKETS_SOCKET_STREAM_H_
#define HOOKE_MPI_GROUP_SOCKETS_SOCKET_STREAM_H_

// Sends and receives messages over one connection, both ways at once. A message is a header followed by its bytes,
// which move straight from and into the callers' memory. Never blocks. One thread at a time may use a stream.

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpi_group/sockets/file_descriptor.h"

namespace hooke {

// The header of a message. It travels as raw bytes, because the ranks of a group run the same program.
struct MessageHeader {
  uint64_t call = 0;  // The call's number.
  uint64_t bytes = 0;
  uint32_t fingerprint = 0;  // The call's fingerprint.
  uint32_t zero = 0;
};

// A message under way. `header` is the header to send, or the one that a receive expects.
struct SocketMessage {
  MessageHeader header;
  char* bytes = nullptr;  // A send only reads them.
  uint64_t moved = 0;     // Bytes moved so far, the header's included.
  int peer = -1;
  bool receives = false;
  bool done = false;
};

class SocketStream {
 public:
  // A connected, non-blocking TCP socket to rank `peer`.
  SocketStream(FileDescriptor socket, int peer) : socket_(std::move(socket)), peer_(peer) {}

  // Starts a message, which must stay in place until it is done. Sends and receives must each come in the order in
  // which the peer starts their counterparts.
  void Start(SocketMessage* message) { (message->receives ? receives_ : sends_).push_back(message); }

  // Moves as many bytes as it can without waiting. Returns true if it moved any. UNAVAILABLE: the peer is gone.
  // INVALID_ARGUMENT: an unexpected message has come. After an error nothing moves any more, and Move() and MoveOut()
  // return that error again.
  absl::StatusOr<bool> Move();
  // Moves only outgoing bytes. It is for a caller that has just started a send and has no reason to look for incoming
  // bytes.
  absl::StatusOr<bool> MoveOut();

  // Looks at a message that has come before any receive was started. INVALID_ARGUMENT if no receive can match it any
  // more: its call is earlier than the given one, or has the same number and another fingerprint. A closed connection
  // is no error here.
  absl::Status LookForStray(uint64_t call, uint32_t fingerprint);

  bool idle() const { return sends_.empty() && receives_.empty(); }
  int socket() const { return socket_.get(); }
  int peer() const { return peer_; }
  // The poll events that Move needs in order to go on.
  int16_t events() const;

  // Forgets all messages and does not touch their memory any more.
  void Drop();

 private:
  absl::StatusOr<bool> Send();
  absl::StatusOr<bool> Receive();
  absl::Status CheckArrived(const MessageHeader& expected) const;
  absl::Status Lost(const char* what, int error) const;

  const FileDescriptor socket_;
  const int peer_;
  std::deque<SocketMessage*> sends_;
  std::deque<SocketMessage*> receives_;
  MessageHeader arrived_;      // Header of the incoming message.
  uint64_t header_bytes_ = 0;  // Bytes of `arrived_` received so far.
  absl::Status failure_;       // The first error. It stays, because nothing after a refused header can be interpreted.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_SOCKET_STREAM_H_
