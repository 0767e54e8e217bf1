#ifndef HOOKE_MPI_GROUP_SOCKETS_SOCKET_STREAM_H_
#define HOOKE_MPI_GROUP_SOCKETS_SOCKET_STREAM_H_

// Messages over one connection, both ways at once: each is a header, then its bytes, straight from and into the memory
// of their callers. Never blocks. Used by socket_transport.cc; one thread at a time.

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpi_group/sockets/file_descriptor.h"

namespace hooke {

// What goes before a message's bytes, as these very bytes: the ranks of a group run the same program.
struct MessageHeader {
  uint64_t call = 0;  // Its number.
  uint64_t bytes = 0;
  uint32_t fingerprint = 0;  // Of the call.
  uint32_t zero = 0;
};

// One that is under way. The header is what is sent, or what is expected.
struct SocketMessage {
  MessageHeader header;
  char* bytes = nullptr;  // A send's are only read.
  uint64_t moved = 0;     // Of the header and the bytes.
  int peer = -1;
  bool receives = false;
  bool done = false;
};

class SocketStream {
 public:
  // A connected, non-blocking TCP socket to rank `peer`.
  SocketStream(FileDescriptor socket, int peer) : socket_(std::move(socket)), peer_(peer) {}

  // The message stays where it is until it is done. Each kind in the order in which the peer starts its counterparts.
  void Start(SocketMessage* message) { (message->receives ? receives_ : sends_).push_back(message); }

  // Moves what can be moved at once, a part of it at least; whether any bytes were. UNAVAILABLE: the peer is gone.
  // INVALID_ARGUMENT: what comes is not what is expected. After an error nothing moves any more: both return it again.
  absl::StatusOr<bool> Move();
  // Only what is sent: for who has just started a send, and knows of no reason why anything should have come.
  absl::StatusOr<bool> MoveOut();

  // A message that nothing here expects so far: INVALID_ARGUMENT if it will never be expected, as it is of an earlier
  // call than the given one, or of one that has its number and is another. A connection that ended is no error here.
  absl::Status LookForStray(uint64_t call, uint32_t fingerprint);

  bool idle() const { return sends_.empty() && receives_.empty(); }
  int socket() const { return socket_.get(); }
  // As poll knows them: what Move waits for.
  int16_t events() const;

  // Forgets all messages: their memory is touched no more.
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
  MessageHeader arrived_;      // Of the message that is coming in.
  uint64_t header_bytes_ = 0;  // Of it, that have come.
  absl::Status failure_;       // Of a move. Past a header that was refused comes nothing that could be understood.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_SOCKET_STREAM_H_
