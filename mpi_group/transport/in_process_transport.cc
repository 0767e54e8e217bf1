#include "mpi_group/transport/in_process_transport.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "mpi_group/transport/settlement.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

enum class Outcome { kPending, kDone, kClosed, kOtherCall, kWrongSize };

// A message that one side has started. Its memory may be read or written until the outcome is known.
struct Message {
  uint32_t call = 0;  // The call's fingerprint.
  absl::Span<const char> outgoing;
  absl::Span<char> incoming;
  Outcome outcome = Outcome::kPending;
};

// The messages to one rank. From each other rank sends and receives meet in order; the side that comes second copies
// the bytes. There is one lock for all senders: with one for each pair, a thousand ranks would have a million.
class Inbox {
 public:
  explicit Inbox(int ranks) : from_(ranks) {}

  void Send(int from, Message* message) {
    absl::MutexLock lock(&mutex_);
    from_[from].sends.push_back(message);
    Match(from_[from]);
  }
  void Receive(int from, Message* message) {
    absl::MutexLock lock(&mutex_);
    from_[from].receives.push_back(message);
    Match(from_[from]);
  }

  // Waits for the outcome of a message. Returns kPending if the deadline passed first.
  Outcome Await(const Message& message, absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    const auto settled = [&message]() { return message.outcome != Outcome::kPending; };
    mutex_.AwaitWithTimeout(absl::Condition(&settled), deadline - SteadyNow());
    return message.outcome;
  }

  // Closes the channel from one rank; either side may call it. Afterwards no message passes, and nobody touches the
  // memory of pending messages any more.
  void Close(int from) {
    absl::MutexLock lock(&mutex_);
    from_[from].closed = true;
    Match(from_[from]);
  }
  void CloseAll() {
    absl::MutexLock lock(&mutex_);
    for (Channel& channel : from_) {
      channel.closed = true;
      Match(channel);
    }
  }

 private:
  // Vectors are fast enough, because a channel has only a few messages at a time.
  struct Channel {
    std::vector<Message*> sends;
    std::vector<Message*> receives;
    bool closed = false;
  };

  void Match(Channel& channel) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!channel.sends.empty() && !channel.receives.empty()) {
      Message& send = *channel.sends.front();
      Message& receive = *channel.receives.front();
      channel.sends.erase(channel.sends.begin());
      channel.receives.erase(channel.receives.begin());
      send.outcome = receive.outcome = Copy(send, receive);
    }
    if (!channel.closed) return;
    for (std::vector<Message*>* waiting : {&channel.sends, &channel.receives}) {
      for (Message* message : *waiting) message->outcome = Outcome::kClosed;
      waiting->clear();
    }
  }

  static Outcome Copy(const Message& send, const Message& receive) {
    if (send.call != receive.call) return Outcome::kOtherCall;
    if (send.outgoing.size() != receive.incoming.size()) return Outcome::kWrongSize;
    std::memcpy(receive.incoming.data(), send.outgoing.data(), send.outgoing.size());
    return Outcome::kDone;
  }

  absl::Mutex mutex_;
  std::vector<Channel> from_ ABSL_GUARDED_BY(mutex_);  // Indexed by the sender.
};

// The ranks' statements about a failure, in memory that all ranks see.
class Board {
 public:
  explicit Board(int n) : settlement_(n) {}

  void Say(int rank, const Statement& statement) {
    absl::MutexLock lock(&mutex_);
    settlement_.Hear(rank, statement);
    any_.store(true, std::memory_order_release);
  }
  void Leave(int rank) {
    absl::MutexLock lock(&mutex_);
    settlement_.HearLeft(rank);
  }
  void Lose(int rank) {
    absl::MutexLock lock(&mutex_);
    settlement_.HearLost(rank);
  }

  absl::Status FirstReport() {
    if (!any_.load(std::memory_order_acquire)) return absl::OkStatus();
    absl::MutexLock lock(&mutex_);
    return settlement_.FirstReport();
  }

  // Hear() keeps the first verdict, so the first rank to conclude decides for all.
  absl::Status AwaitVerdict(absl::Time until) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&settlement_, &Settlement::complete), until - SteadyNow());
    settlement_.Hear(0, VerdictStatement(settlement_.Verdict()));
    return settlement_.Verdict();
  }

 private:
  std::atomic<bool> any_{false};
  absl::Mutex mutex_;
  Settlement settlement_ ABSL_GUARDED_BY(mutex_);
};

class Network {
 public:
  explicit Network(int n) : size_(n), board_(n) {
    for (int rank = 0; rank < n; ++rank) inboxes_.emplace_back(n);
  }

  int size() const { return size_; }
  Inbox& inbox(int rank) { return inboxes_[rank]; }
  Board& board() { return board_; }

  void Close() {
    for (Inbox& inbox : inboxes_) inbox.CloseAll();
  }

 private:
  const int size_;
  std::deque<Inbox> inboxes_;  // A deque, because a mutex cannot be moved.
  Board board_;
};

absl::Status Result(Outcome outcome, absl::string_view what, int peer, const CallLabel& call) {
  switch (outcome) {
    case Outcome::kDone:
      return absl::OkStatus();
    case Outcome::kClosed:
      return absl::UnavailableError(absl::StrCat(what, " rank ", peer, ", which has left the group"));
    case Outcome::kPending:
      return absl::DeadlineExceededError(absl::StrCat("waited for rank ", peer, " until the deadline (", what, " it)"));
    case Outcome::kOtherCall:
      return absl::InvalidArgumentError(absl::StrCat(what, " rank ", peer,
                                                     ", which is in another call than this rank (", call.Text(),
                                                     "); all ranks must call the same operations"));
    case Outcome::kWrongSize:
      return absl::InvalidArgumentError(absl::StrCat(what, " rank ", peer,
                                                     ": its message has another size than this rank's; all ranks must ",
                                                     "call the same operations with the same sizes"));
  }
  return absl::InternalError("unknown outcome of a wait");
}

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Network> network, int rank) : network_(std::move(network)), rank_(rank) {}

  ~InProcessTransport() override {
    network_->board().Leave(rank_);
    Leave();
  }

  int rank() const override { return rank_; }
  int size() const override { return network_->size(); }

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    if (outgoing.bytes.empty()) return Ticket();
    const Ticket ticket = NewMessage(outgoing.to, /*sends=*/true);
    Started& started = started_[ticket.slot];
    started.message.outgoing = outgoing.bytes;
    network_->inbox(outgoing.to).Send(rank_, &started.message);
    return ticket;
  }

  absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) override {
    if (incoming.bytes.empty()) return Ticket();
    const Ticket ticket = NewMessage(incoming.from, /*sends=*/false);
    Started& started = started_[ticket.slot];
    started.message.incoming = incoming.bytes;
    network_->inbox(rank_).Receive(incoming.from, &started.message);
    return ticket;
  }

  absl::Status Wait(Ticket ticket, absl::Time deadline) override {
    if (ticket.slot < 0) return absl::OkStatus();
    const Started& started = started_[ticket.slot];
    const Outcome outcome = InboxOf(started).Await(started.message, deadline);
    if (outcome == Outcome::kDone) {
      free_.push_back(ticket.slot);
      return absl::OkStatus();
    }
    // Closes this rank's channels: peers need not wait for this rank, and no channel refers to its messages any more.
    Leave();
    // A rank that reports a failure closes all channels, so waiting ranks need not look for notices.
    const absl::Status report = outcome == Outcome::kClosed ? CheckNotices() : absl::OkStatus();
    return report.ok() ? Result(outcome, started.sends ? "sending to" : "receiving from", started.peer, history_.last())
                       : report;
  }

  bool IsDone(Ticket ticket) override {
    if (ticket.slot < 0) return true;
    const Started& started = started_[ticket.slot];
    return InboxOf(started).Await(started.message, absl::InfinitePast()) != Outcome::kPending;
  }

  void Begin(const CallLabel& label, absl::Time now) override { history_.Begin(label, now); }

  absl::Status CheckNotices() override { return network_->board().FirstReport(); }

  void HearLost(int rank) override { network_->board().Lose(rank); }

  absl::Status Settle(const absl::Status& failure, absl::Time until) override {
    network_->board().Say(rank_, FailureStatement(history_, failure, SteadyNow()));
    network_->Close();
    return network_->board().AwaitVerdict(until);
  }

 private:
  struct Started {
    Message message;
    int peer = -1;
    bool sends = false;
  };

  Inbox& InboxOf(const Started& started) { return network_->inbox(started.sends ? started.peer : rank_); }

  Ticket NewMessage(int peer, bool sends) {
    if (free_.empty()) {
      free_.push_back(static_cast<int>(started_.size()));
      started_.emplace_back();
    }
    const Ticket ticket = {free_.back()};
    free_.pop_back();
    started_[ticket.slot] = {Message(), peer, sends};
    started_[ticket.slot].message.call = history_.fingerprint();
    return ticket;
  }

  void Leave() {
    network_->inbox(rank_).CloseAll();
    for (int peer = 0; peer < size(); ++peer) network_->inbox(peer).Close(rank_);
  }

  const std::shared_ptr<Network> network_;
  const int rank_;
  CallHistory history_;
  std::deque<Started> started_;  // Indexed by Ticket::slot. A deque, because inboxes point to its messages.
  std::vector<int> free_;        // Free slots of `started_`.
};

}  // namespace

std::vector<std::unique_ptr<Transport>> MakeInProcessTransports(int n) {
  const auto network = std::make_shared<Network>(n);
  std::vector<std::unique_ptr<Transport>> transports;
  transports.reserve(n);
  for (int rank = 0; rank < n; ++rank) transports.push_back(std::make_unique<InProcessTransport>(network, rank));
  return transports;
}

}  // namespace hooke
