#include "mpi_group/mpi_transport.h"

#include <mpi.h>

#include <deque>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "mpi_group/mpi_notices.h"
#include "mpi_group/mpi_wait.h"
#include "mpi_group/settlement.h"

namespace hooke {
namespace {

// Messages of different calls have different tags, but for chance. Receives take any, to see one that differs.
int TagOf(uint32_t fingerprint, int tag_max) { return static_cast<int>(fingerprint % static_cast<uint32_t>(tag_max)); }

// Of a transport's messages, and of its notices.
struct Communicators {
  MPI_Comm messages = MPI_COMM_NULL;
  MPI_Comm notices = MPI_COMM_NULL;
};

class MpiTransport : public Transport {
 public:
  MpiTransport(MpiSession& session, const Communicators& communicators, int tag_max, uint64_t message_bytes_max)
      : session_(session),
        communicators_(communicators),
        tag_max_(tag_max),
        message_bytes_max_(message_bytes_max),
        notices_(communicators.notices, session.rank(), session.size()),
        tag_(TagOf(history_.fingerprint(), tag_max)) {}

  ~MpiTransport() override {
    if (session_.failed()) return;
    MPI_Comm_free(&communicators_.messages);
    MPI_Comm_free(&communicators_.notices);
  }

  int rank() const override { return session_.rank(); }
  int size() const override { return session_.size(); }

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    return Start(outgoing.bytes, outgoing.to, [&](absl::Span<const char> part, MPI_Request* request) {
      return MPI_Isend(part.data(), static_cast<int>(part.size()), MPI_BYTE, outgoing.to, tag_, communicators_.messages,
                       request);
    });
  }

  absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) override {
    absl::StatusOr<Ticket> ticket =
        Start(incoming.bytes, incoming.from, [&](absl::Span<char> part, MPI_Request* request) {
          return MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_BYTE, incoming.from, MPI_ANY_TAG,
                           communicators_.messages, request);
        });
    if (ticket.ok() && ticket->slot >= 0) messages_[ticket->slot].receives = true;
    return ticket;
  }

  absl::Status Wait(Ticket ticket, absl::Time deadline) override {
    if (ticket.slot < 0) return absl::OkStatus();
    Message& message = messages_[ticket.slot];
    absl::Status status = Await(message, deadline);
    if (!status.ok()) {
      session_.MarkFailed();
      return status;
    }
    message.requests.clear();
    free_.push_back(ticket.slot);
    return status;
  }

  void Begin(const CallLabel& label, absl::Time now) override {
    history_.Begin(label, now);
    tag_ = TagOf(history_.fingerprint(), tag_max_);
  }

  absl::Status CheckNotices() override { return notices_.Check(); }

  absl::Status Settle(const absl::Status& failure, absl::Time until) override {
    session_.MarkFailed();
    return notices_.Settle(history_, failure, until);
  }

 private:
  // One that is under way: it travels as one or more of MPI's, each of at most message_bytes_max_.
  struct Message {
    absl::InlinedVector<MPI_Request, 1> requests;
    uint64_t bytes = 0;
    int peer = -1;
    int tag = 0;
    bool receives = false;
  };

  // After an error the requests are left as they are: the transport is unusable, and only MPI_Finalize, which will not
  // be called, would mind. NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
  template <typename Bytes, typename StartPart>
  absl::StatusOr<Ticket> Start(Bytes bytes, int peer, const StartPart& start_part) {
    if (bytes.empty()) return Ticket();
    if (free_.empty()) {
      free_.push_back(static_cast<int>(messages_.size()));
      messages_.emplace_back();
    }
    const Ticket ticket = {free_.back()};
    free_.pop_back();
    Message& message = messages_[ticket.slot];
    message.bytes = bytes.size();
    message.peer = peer;
    message.tag = tag_;
    message.receives = false;
    for (uint64_t begin = 0; begin < bytes.size(); begin += message_bytes_max_) {
      message.requests.push_back(MPI_REQUEST_NULL);
      const int code = start_part(bytes.subspan(begin, message_bytes_max_), &message.requests.back());
      if (code == MPI_SUCCESS) continue;
      session_.MarkFailed();
      return MpiStatus(code, absl::StrCat("starting a message between rank ", rank(), " and rank ", peer));
    }
    return ticket;
  }

  absl::Status Await(Message& message, absl::Time deadline) {
    absl::InlinedVector<MPI_Status, 1> statuses(message.requests.size());
    const absl::StatusOr<bool> done = AwaitAll(absl::MakeSpan(message.requests), absl::MakeSpan(statuses), deadline,
                                               [this] { return notices_.Check(); });
    const absl::string_view what = message.receives ? "receiving from" : "sending to";
    if (absl::IsAborted(done.status())) return done.status();
    if (!done.ok()) {
      return absl::Status(done.status().code(),
                          absl::StrCat(what, " rank ", message.peer, ": ", done.status().message()));
    }
    if (!*done) {
      return absl::DeadlineExceededError(
          absl::StrCat("waited for rank ", message.peer, " until the deadline (", what, " it)"));
    }
    return message.receives ? CheckReceived(statuses, message) : absl::OkStatus();
  }
  // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

  // A longer message than expected is an error of MPI's; a shorter one is not.
  absl::Status CheckReceived(absl::Span<const MPI_Status> received, const Message& message) const {
    uint64_t bytes = 0;
    for (const MPI_Status& part : received) {
      if (part.MPI_TAG != message.tag) {
        return absl::InvalidArgumentError(
            absl::StrCat("receiving from rank ", message.peer, ", which is in another call than this rank (",
                         history_.last().Text(), "); all ranks must call the same ", "operations in the same order"));
      }
      int part_bytes = 0;
      absl::Status status = MpiStatus(MPI_Get_count(&part, MPI_BYTE, &part_bytes), "MPI_Get_count");
      if (!status.ok()) return status;
      bytes += static_cast<uint64_t>(part_bytes);
    }
    if (bytes == message.bytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("receiving from rank ", message.peer, ": ", bytes,
                                                   " bytes came where ", message.bytes, " were expected; all ranks ",
                                                   "must call the same operations with the same sizes"));
  }

  MpiSession& session_;
  Communicators communicators_;
  const int tag_max_;
  const uint64_t message_bytes_max_;
  CallHistory history_;
  MpiNotices notices_;
  int tag_;                       // Of the call this rank is in.
  std::deque<Message> messages_;  // Slots: MPI writes into their requests, so they stay where they are.
  std::vector<int> free_;         // Of them.
};

// A copy of MPI_COMM_WORLD, whose errors are returned.
absl::StatusOr<MPI_Comm> NewCommunicator(const MpiSession& session, absl::Time deadline) {
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Request duplicated = MPI_REQUEST_NULL;
  absl::Status status = MpiStatus(MPI_Comm_idup(MPI_COMM_WORLD, &communicator, &duplicated), "MPI_Comm_idup");
  if (!status.ok()) return status;
  const absl::StatusOr<bool> done = AwaitAll(absl::MakeSpan(&duplicated, 1), {}, deadline);
  if (!done.ok()) return done.status();
  if (!*done) {
    return absl::DeadlineExceededError(absl::StrCat("making a communicator of ", session.size(),
                                                    " ranks: not all of them took part before the deadline"));
  }
  status = MpiStatus(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (!status.ok()) return status;
  return communicator;
}

absl::StatusOr<int> TagMax(MPI_Comm communicator) {
  int* tag_max = nullptr;
  int found = 0;
  absl::Status status = MpiStatus(MPI_Comm_get_attr(communicator, MPI_TAG_UB, static_cast<void*>(&tag_max), &found),
                                  "MPI_Comm_get_attr of MPI_TAG_UB");
  if (!status.ok()) return status;
  return found != 0 ? *tag_max : 32767;  // What every MPI grants.
}

absl::StatusOr<std::unique_ptr<Transport>> Make(MpiSession& session, const MpiTransportOptions& options) {
  Communicators communicators;
  for (MPI_Comm* communicator : {&communicators.messages, &communicators.notices}) {
    const absl::StatusOr<MPI_Comm> made = NewCommunicator(session, options.deadline);
    if (!made.ok()) return made.status();
    *communicator = *made;
  }
  const absl::StatusOr<int> tag_max = TagMax(MPI_COMM_WORLD);
  if (!tag_max.ok()) return tag_max.status();
  return std::make_unique<MpiTransport>(session, communicators, *tag_max, options.message_bytes_max);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeMpiTransport(MpiSession& session, const MpiTransportOptions& options) {
  absl::StatusOr<std::unique_ptr<Transport>> transport = Make(session, options);
  if (!transport.ok()) session.MarkFailed();
  return transport;
}

}  // namespace hooke
