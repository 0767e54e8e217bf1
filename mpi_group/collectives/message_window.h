#ifndef HOOKE_MPI_GROUP_COLLECTIVES_MESSAGE_WINDOW_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_MESSAGE_WINDOW_H_

// Windows of messages under way: collectives that cut their values into chunks send and receive through them. A window
// holds a bounded number of messages, in the order in which they were started. Each message is a chunk of a list. A
// chunk that is one piece travels from or to the list's own memory, others through the call's Scratch. So at most one
// SendWindow and one ReceiveWindow may use a Scratch at a time.
//
// An empty chunk counts as a message but is not sent, because the receiver also knows that it is empty.

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

class SendWindow {
 public:
  // Keeps at most `messages` messages under way; values below 1 count as 1. The transport and the call must outlive the
  // window.
  SendWindow(Transport& transport, const Call& call, int messages);

  uint64_t started() const { return started_; }

  // Starts to send a chunk, after waiting for the oldest message if the window is full. The chunk's values must not
  // change until the message is done.
  absl::Status Start(int to, const TensorList& chunk);
  // Waits until the first `count` messages are done; at least `count` must have been started.
  absl::Status WaitForFirst(uint64_t count);
  absl::Status Finish() { return WaitForFirst(started_); }

 private:
  Transport& transport_;
  const Call& call_;
  absl::InlinedVector<Transport::Ticket, 16> tickets_;  // Message i is at index i modulo the window's size.
  uint64_t started_ = 0;
  uint64_t done_ = 0;
};

class ReceiveWindow {
 public:
  // Has room for `messages` messages under way; values below 1 count as 1. The transport and the call must outlive the
  // window.
  ReceiveWindow(Transport& transport, const Call& call, int messages);

  uint64_t started() const { return started_; }

  // Starts to receive a message into the chunk itself. The caller starts no more messages than the window's limit
  // before it waits for the oldest by Next().
  absl::Status StartInto(int from, const TensorList& chunk);
  // Starts to receive as many bytes as the chunk has into a buffer, to be reduced with the chunk.
  absl::Status StartBeside(int from, const TensorList& chunk);

  // Waits for the oldest message and returns its bytes. For a message started by StartBeside they lie in a buffer.
  // Starting messages until the window is full again overwrites that buffer.
  absl::StatusOr<absl::Span<const char>> Next();

 private:
  struct Message {
    Transport::Ticket ticket;
    absl::Span<char> bytes;
    TensorList scatter_to;  // Empty if the bytes are already in place.
  };

  std::vector<char>& Buffer() { return call_.scratch.incoming[started_ % messages_.size()]; }
  absl::Status Start(int from, absl::Span<char> bytes, const TensorList& scatter_to);

  Transport& transport_;
  const Call& call_;
  absl::InlinedVector<Message, 4> messages_;
  uint64_t started_ = 0;
  uint64_t done_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_MESSAGE_WINDOW_H_
