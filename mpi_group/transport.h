#ifndef HOOKE_MPI_GROUP_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_H_

// How bytes move between the ranks of a group; what collectives are functions over. Made by in_process_transport.h
// (threads of one process), mpi_transport.h (processes), faulty_transport.h (a wrapper for tests).
//
// A message has no header: the receiver knows its size, and messages from one rank to another arrive in the order of
// the calls. Calls of one Transport come from one thread at a time. After an error the transport is unusable: later
// calls may return anything but OK, and memory passed to the failed call must stay until the transport is destroyed.
//
// Errors: DEADLINE_EXCEEDED names the rank that was waited for. UNAVAILABLE: a peer left the group. INTERNAL: the
// transport itself failed, or the ranks disagree on a message's size (they are in different collectives).

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hooke {

// Empty bytes mean no message; then the rank is not looked at.
struct Outgoing {
  int to = -1;
  absl::Span<const char> bytes;
};
struct Incoming {
  int from = -1;
  absl::Span<char> bytes;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends and receives at once; returns when both are done: the outgoing bytes may be changed, the incoming ones are
  // there. That a send is done does not mean that its receiver has it. The two peers may be the same rank; neither is
  // this one.
  virtual absl::Status Exchange(const Outgoing& outgoing, const Incoming& incoming, absl::Time deadline) = 0;

  absl::Status Send(const Outgoing& outgoing, absl::Time deadline) { return Exchange(outgoing, {}, deadline); }
  absl::Status Receive(const Incoming& incoming, absl::Time deadline) { return Exchange({}, incoming, deadline); }
};

// Values as the bytes that a Transport moves. Ranks of a group share one byte order and float format.
inline absl::Span<const char> BytesOf(absl::Span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
inline absl::Span<char> MutableBytesOf(absl::Span<float> values) {
  return {reinterpret_cast<char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_H_
