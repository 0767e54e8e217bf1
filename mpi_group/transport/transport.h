#ifndef HOOKE_MPI_GROUP_TRANSPORT_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_TRANSPORT_H_

// How bytes move between the ranks of a group; what collectives are functions over. Made by in_process_transport.h
// (threads of one process), mpi/mpi_transport.h (processes), sockets/socket_transport.h (over another one, between
// nodes), faulty_transport.h and sub_transport.h (wrappers).
//
// A message has no header: the receiver knows its size, and messages from one rank to another arrive in the order in
// which they were started. Calls of one Transport come from one thread at a time. After an error the transport is
// unusable: later calls may return anything but OK, and memory passed to unfinished calls must stay until the transport
// is destroyed.
//
// Messages belong to a call: what one rank sends in a call another rank receives in the same call, or it is an error.
// When a collective fails on one rank, that rank settles: it tells the others, hears them, and all get one error, which
// names the ranks that diverge or are missing. So no rank waits for one that has given up.
//
// Errors: DEADLINE_EXCEEDED names the rank that was waited for. UNAVAILABLE: a peer left the group. INVALID_ARGUMENT:
// the ranks are in different calls, or disagree on a message's size. ABORTED: another rank reported a failure; Settle
// says which. INTERNAL: the transport itself failed.

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/transport/call_label.h"

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
  // Stands for a message that was started; to be waited for exactly once, unless the transport has failed.
  struct Ticket {
    int slot = -1;  // -1: nothing to wait for.
  };

  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Both return at once. The memory stays untouched (by a send: unchanged) until Wait has returned OK for the ticket.
  // Any number may be under way, in both directions, with the same peer or others; none is this rank itself.
  virtual absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) = 0;
  virtual absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) = 0;
  // Tickets may be waited for in any order: all messages move meanwhile. That a send is done does not mean that its
  // receiver has it.
  virtual absl::Status Wait(Ticket ticket, absl::Time deadline) = 0;
  // Whether Wait would return at once, with OK or not. Moves what can be moved meanwhile; the ticket stays to be waited
  // for.
  virtual bool IsDone(Ticket ticket) = 0;

  // The messages that start from now on, on this rank, belong to this call. Before the first one: to no call, which is
  // a call of its own. `now` is when the rank entered it. Costs some tens of nanoseconds.
  virtual void Begin(const CallLabel& label, absl::Time now) = 0;

  // ABORTED if another rank has settled, as far as is known here. Waits do this by themselves, a few milliseconds after
  // they began and then every few; who waits on anything else calls it as rarely. Costs about a microsecond.
  virtual absl::Status CheckNotices() = 0;

  // For a rank whose collective failed, here or in memory that ranks share: tells all others, hears what they say until
  // all have spoken, but not past `until`, and returns what the user is to know, never OK. The same on all ranks, if
  // they hear one another in time. The transport is unusable afterwards; later calls return the same at once.
  virtual absl::Status Settle(const absl::Status& failure, absl::Time until) = 0;

  // Sends and receives at once; returns when both are done.
  absl::Status Exchange(const Outgoing& outgoing, const Incoming& incoming, absl::Time deadline);
  absl::Status Send(const Outgoing& outgoing, absl::Time deadline) { return Exchange(outgoing, {}, deadline); }
  absl::Status Receive(const Incoming& incoming, absl::Time deadline) { return Exchange({}, incoming, deadline); }
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_TRANSPORT_H_
