#ifndef HOOKE_MPI_GROUP_COLLECTIVES_MESSAGE_WINDOW_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_MESSAGE_WINDOW_H_

// A bounded number of messages under way, in the order in which they were started: what collectives that cut their
// values into chunks are written with. Messages are chunks of lists. One whose chunk is a single piece travels from or
// to the list's own memory, others through the call's Scratch: at most one window of each kind uses a Scratch at a
// time.
//
// An empty chunk is counted as a message and not sent; sender and receiver know its size alike.

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
  // Of at most `messages`, at least 1. Transport and call outlive it.
  SendWindow(Transport& transport, const Call& call, int messages);

  uint64_t started() const { return started_; }

  // Waits for the oldest message if the window is full. The chunk's values stay as they are until the message is done.
  absl::Status Start(int to, const TensorList& chunk);
  // Returns when the first `count` messages are done; that many have been started.
  absl::Status WaitForFirst(uint64_t count);
  absl::Status Finish() { return WaitForFirst(started_); }

 private:
  Transport& transport_;
  const Call& call_;
  absl::InlinedVector<Transport::Ticket, 16> tickets_;  // Message i has place i modulo the window's size.
  uint64_t started_ = 0;
  uint64_t done_ = 0;
};

class ReceiveWindow {
 public:
  ReceiveWindow(Transport& transport, const Call& call, int messages);

  uint64_t started() const { return started_; }

  // Both are called only while fewer messages are under way than fit. The chunk's values are what comes.
  absl::Status StartInto(int from, const TensorList& chunk);
  // As many bytes as the chunk has, apart from it.
  absl::Status StartBeside(int from, const TensorList& chunk);

  // Waits for the oldest message. What came, for messages started by StartBeside; it stays until as many further
  // messages have been started as the window holds.
  absl::StatusOr<absl::Span<const char>> Next();

 private:
  struct Message {
    Transport::Ticket ticket;
    absl::Span<char> bytes;
    TensorList scatter_to;  // Empty: nothing to scatter.
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
