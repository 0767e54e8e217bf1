#include "mpi_group/mpi/mpi_transport.h"

#include <mpi.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "mpi_group/mpi/mpi_notices.h"
#include "mpi_group/mpi/mpi_wait.h"
#include "mpi_group/mpi/mpi_watchdog.h"
#include "mpi_group/transport/settlement.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// A message's tag identifies its call. Some bits of the call's number show which of two calls came first. Some bits of
// its fingerprint distinguish calls of one number, except by chance. A receive takes only messages of its own call,
// because another call's could be longer than its memory.
class Tags {
 public:
  explicit Tags(int tag_max) {
    int bits = 0;
    while (bits < 31 && (int64_t{1} << (bits + 1)) - 1 <= tag_max) ++bits;
    number_bits_ = bits / 2;
    fingerprint_bits_ = bits - number_bits_;
  }

  int Of(const CallLabel& call, uint32_t fingerprint) const {
    const uint64_t number = call.number & ((uint64_t{1} << number_bits_) - 1);
    return static_cast<int>(number << fingerprint_bits_ | (fingerprint & ((uint64_t{1} << fingerprint_bits_) - 1)));
  }

  // True if the call with tag `one` came before the one with tag `other`. The answer is right if the two calls are
  // fewer than half of the distinguishable numbers apart.
  bool IsBefore(int one, int other) const {
    const int64_t numbers = int64_t{1} << number_bits_;
    const int64_t ahead = ((other >> fingerprint_bits_) - (one >> fingerprint_bits_) + numbers) % numbers;
    return ahead > 0 && ahead < numbers / 2;
  }

 private:
  int number_bits_ = 0;
  int fingerprint_bits_ = 0;
};

// A peer's message of another call is an error if it is visible for this long and the message of this call does not
// come. Over several links a short message may arrive before the rest of a long one. If half of the remaining time is
// shorter, that is used instead.
constexpr absl::Duration kStrangeFor = absl::Seconds(2);

// A rank looks for messages left over from earlier calls once in this many calls. That is often enough for a
// CallHistory to remember the call of such a message.
constexpr int kCallsPerLook = 3;
static_assert(kCallsPerLook < static_cast<int>(CallHistory::kCalls));

// The two communicators of a transport.
struct Communicators {
  MPI_Comm messages = MPI_COMM_NULL;
  MPI_Comm notices = MPI_COMM_NULL;
};

class MpiTransport : public Transport {
 public:
  MpiTransport(MpiSession& session, const Communicators& communicators, int tag_max, uint64_t message_bytes_max)
      : session_(session),
        communicators_(communicators),
        tags_(tag_max),
        message_bytes_max_(message_bytes_max),
        notices_(communicators.notices, session.rank(), session.size()),
        watchdog_(session.rank()),
        tag_(tags_.Of(history_.last(), history_.fingerprint())) {}

  ~MpiTransport() override {
    // After a failure MPI may be in any state, so nothing is freed.
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
          return MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_BYTE, incoming.from, tag_,
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

  bool IsDone(Ticket ticket) override {
    if (ticket.slot < 0) return true;
    const Message& message = messages_[ticket.slot];
    return std::all_of(message.requests.begin(), message.requests.end(), [](MPI_Request request) {
      int done = 0;
      return MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    });
  }

  void Begin(const CallLabel& label, absl::Time now) override {
    history_.Begin(label, now);
    tag_ = tags_.Of(history_.last(), history_.fingerprint());
    check_due_ = true;
  }

  absl::Status CheckNotices() override {
    const MpiWatchdog::Watch limit(watchdog_, SteadyNow(), "hearing of failures");
    return notices_.Check();
  }

  void HearLost(int rank) override { notices_.HearLost(rank); }

  absl::Status Settle(const absl::Status& failure, absl::Time until) override {
    session_.MarkFailed();
    CancelReceives();
    const MpiWatchdog::Watch watch(watchdog_, until, "telling the other ranks of a failure");
    return notices_.Settle(history_, failure, until);
  }

 private:
  // A message under way. It travels as one or more MPI messages of at most message_bytes_max_ each.
  struct Message {
    absl::InlinedVector<MPI_Request, 1> requests;
    uint64_t bytes = 0;
    int peer = -1;
    int tag = 0;
    bool receives = false;
  };

  // After an error the requests are abandoned. The transport is then unusable, and MPI_Finalize, which would need them
  // complete, is not called. NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
  template <typename Bytes, typename StartPart>
  absl::StatusOr<Ticket> Start(Bytes bytes, int peer, const StartPart& start_part) {
    if (bytes.empty()) return Ticket();
    if (check_due_) {
      check_due_ = false;
      absl::Status status = LookAround();
      if (!status.ok()) return status;
    }
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
    const absl::string_view what = message.receives ? "receiving from" : "sending to";
    const MpiWatchdog::Watch limit(watchdog_, deadline, what, message.peer);
    Stranger stranger;
    const absl::StatusOr<bool> done =
        AwaitAll(absl::MakeSpan(message.requests), absl::MakeSpan(statuses), deadline, [&]() -> absl::Status {
          absl::Status status = notices_.Check();
          return status.ok() && message.receives ? LookForOtherCall(message, deadline, stranger) : status;
        });
    if (absl::IsAborted(done.status()) || absl::IsInvalidArgument(done.status())) return done.status();
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

  // A message of another call than the one that this rank waits in.
  struct Stranger {
    int tag = -1;
    absl::Time since;
  };

  // A peer's messages begin to arrive in the order in which they were sent. If one of another call is visible and none
  // of this call comes, the peer is in that other call.
  absl::Status LookForOtherCall(const Message& message, absl::Time deadline, Stranger& stranger) {
    int arrived = 0;
    MPI_Status envelope;
    absl::Status status =
        MpiStatus(MPI_Iprobe(message.peer, MPI_ANY_TAG, communicators_.messages, &arrived, &envelope), "MPI_Iprobe");
    if (!status.ok()) return status;
    const absl::Time now = SteadyNow();
    const int tag = arrived != 0 && envelope.MPI_TAG != message.tag ? envelope.MPI_TAG : -1;
    if (tag != stranger.tag) stranger.since = now;
    stranger.tag = tag;
    if (tag < 0 || now - stranger.since < std::min(kStrangeFor, (deadline - stranger.since) / 2)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("receiving from rank ", message.peer, ", which is in another call than this rank (",
                     history_.last().Text(), "); all ranks must call the same operations in the same order"));
  }

  // Makes the checks that are due before a call's first message. If the others have given up, this rank must not start
  // a message, because their memory may be gone. It also finds a message left over from an earlier call, which this
  // rank's call did not take.
  absl::Status LookAround() {
    absl::Status status = notices_.Check();
    if (!status.ok() || ++calls_since_look_ < kCallsPerLook) return status;
    calls_since_look_ = 0;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      int arrived = 0;
      MPI_Status envelope;
      status = MpiStatus(MPI_Iprobe(peer, MPI_ANY_TAG, communicators_.messages, &arrived, &envelope), "MPI_Iprobe");
      if (!status.ok()) return status;
      if (arrived == 0 || !tags_.IsBefore(envelope.MPI_TAG, tag_)) continue;
      return absl::InvalidArgumentError(absl::StrCat("a message of rank ", peer, " was taken by none of this rank's ",
                                                     "calls; all ranks must call the same operations in the same ",
                                                     "order"));
    }
    return absl::OkStatus();
  }

  // Cancels all receives, because late messages must not be written to memory that the caller may have freed. A receive
  // that is already under way cannot be cancelled; for its sake the caller's memory must stay (group.h).
  void CancelReceives() {
    for (Message& message : messages_) {
      if (!message.receives) continue;
      for (MPI_Request& request : message.requests) {
        int done = 0;
        if (request == MPI_REQUEST_NULL || MPI_Cancel(&request) != MPI_SUCCESS) continue;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      }
    }
  }

  // Returns an error if a message was shorter than expected. MPI itself reports only messages that are too long.
  static absl::Status CheckReceived(absl::Span<const MPI_Status> received, const Message& message) {
    uint64_t bytes = 0;
    for (const MPI_Status& part : received) {
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
  const Tags tags_;
  const uint64_t message_bytes_max_;
  CallHistory history_;
  MpiNotices notices_;
  MpiWatchdog watchdog_;
  int calls_since_look_ = 0;
  bool check_due_ = false;        // Notices must be checked before the call's next message.
  int tag_;                       // Tag of the call that this rank is in.
  std::deque<Message> messages_;  // Indexed by Ticket::slot. A deque, because MPI writes into its requests.
  std::vector<int> free_;         // Free slots of `messages_`.
};

// Duplicates MPI_COMM_WORLD; calls on the copy return errors instead of aborting.
absl::StatusOr<MPI_Comm> NewCommunicator(const MpiSession& session, absl::Time deadline) {
  // MPI writes the new communicator once all ranks have come. That may be after the deadline; the memory is then leaked
  // on purpose.
  auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  MPI_Request duplicated = MPI_REQUEST_NULL;
  absl::Status status = MpiStatus(MPI_Comm_idup(MPI_COMM_WORLD, made.get(), &duplicated), "MPI_Comm_idup");
  if (!status.ok()) return status;
  const absl::StatusOr<bool> done = AwaitAll(absl::MakeSpan(&duplicated, 1), {}, deadline);
  if (!done.ok() || !*done) static_cast<void>(made.release());
  if (!done.ok()) return done.status();
  if (!*done) {
    return absl::DeadlineExceededError(absl::StrCat("making a communicator of ", session.size(),
                                                    " ranks: not all of them took part before the deadline"));
  }
  status = MpiStatus(MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (!status.ok()) return status;
  return *made;
}

absl::StatusOr<int> TagMax(MPI_Comm communicator) {
  int* tag_max = nullptr;
  int found = 0;
  absl::Status status = MpiStatus(MPI_Comm_get_attr(communicator, MPI_TAG_UB, static_cast<void*>(&tag_max), &found),
                                  "MPI_Comm_get_attr of MPI_TAG_UB");
  if (!status.ok()) return status;
  return found != 0 ? *tag_max : 32767;  // Every MPI library allows tags up to this.
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
