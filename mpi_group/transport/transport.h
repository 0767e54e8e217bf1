#ifndef HOOKE_MPI_GROUP_TRANSPORT_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_TRANSPORT_H_

// The interface over which collectives send bytes between the ranks of a group. Implementations: in_process_transport.h
// (threads of one process), mpi/mpi_transport.h (processes), sockets/socket_transport.h (sockets between nodes, above
// another transport), and the wrappers faulty_transport.h, forwarding_transport.h and sub_transport.h.
//
// The receiver knows the size of each message. Messages from one rank to another arrive in the order in which they were
// started. One thread at a time calls a Transport. After an error it is unusable: later calls may return anything but
// OK. Memory passed to unfinished calls must then stay until the transport is destroyed.
//
// Every message belongs to a call, and its receiver must be in the same call; anything else is an error. A rank whose
// collective fails settles: it tells the others, hears their statements, and all get one error, which names the ranks
// that diverge or are missing. So no rank waits for one that has given up.
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

// Empty bytes mean no message; the rank is then ignored.
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
  // A message that was started. Callers wait for each ticket exactly once, unless the transport has failed.
  struct Ticket {
    int slot = -1;  // -1: nothing to wait for.
  };

  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // StartSend() and StartReceive() start a message and return at once. Until Wait has returned OK for the ticket, the
  // caller must not change the memory of a send, nor touch that of a receive. Any number of messages may be under way,
  // in both directions, with any peers; none goes to this rank itself.
  virtual absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) = 0;
  virtual absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) = 0;
  // Tickets may be waited for in any order; all messages move meanwhile. A send may be done before its receiver has the
  // message.
  virtual absl::Status Wait(Ticket ticket, absl::Time deadline) = 0;
  // True if Wait would return at once, with OK or an error. It moves messages as far as it can. The ticket must still
  // be waited for.
  virtual bool IsDone(Ticket ticket) = 0;

  // Starts a call on this rank: messages started from now on belong to it. `now` is the time at which the rank entered
  // the call. Messages before the first Begin belong to a call of their own, "no call". Begin() takes some tens of
  // nanoseconds.
  virtual void Begin(const CallLabel& label, absl::Time now) = 0;

  // ABORTED if another rank is known to have settled. Wait makes this check by itself, every few milliseconds. Code
  // that waits for anything else should make it as often. Costs about a microsecond.
  virtual absl::Status CheckNotices() = 0;

  // Notes that the process of `rank` has ended, which this rank has learned by other means. Settle does not wait for a
  // statement of `rank`.
  virtual void HearLost(int rank) = 0;

  // Settles a collective that failed on this rank, in messages or in shared memory. It tells all other ranks and hears
  // their statements, until it has heard all or `until` has come. Returns the error for the user, never OK; it is the
  // same on all ranks that hear one another in time. Afterwards the transport is unusable, and later calls return the
  // same error at once.
  virtual absl::Status Settle(const absl::Status& failure, absl::Time until) = 0;

  // Sends and receives at the same time; returns when both messages are done.
  absl::Status Exchange(const Outgoing& outgoing, const Incoming& incoming, absl::Time deadline);
  absl::Status Send(const Outgoing& outgoing, absl::Time deadline) { return Exchange(outgoing, {}, deadline); }
  absl::Status Receive(const Incoming& incoming, absl::Time deadline) { return Exchange({}, incoming, deadline); }
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_TRANSPORT_H_
