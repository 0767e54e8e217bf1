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

// The connection from one rank to another. Sends and receives meet in order; the side that comes second copies the
// bytes.
class Channel {
 public:
  void Send(Message* message) {
    absl::MutexLock lock(&mutex_);
    sends_.push_back(message);
    Match();
  }
  void Receive(Message* message) {
    absl::MutexLock lock(&mutex_);
    receives_.push_back(message);
    Match();
  }

  // Waits for the outcome of a message. Returns kPending if the deadline passed first.
  Outcome Await(const Message& message, absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    const auto settled = [&message]() { return message.outcome != Outcome::kPending; };
    mutex_.AwaitWithTimeout(absl::Condition(&settled), deadline - SteadyNow());
    return message.outcome;
  }

  // Closes the channel; either side may call it. Afterwards no message passes, and nobody touches the memory of pending
  // messages any more.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    Match();
  }

 private:
  void Match() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!sends_.empty() && !receives_.empty()) {
      Message& send = *sends_.front();
      Message& receive = *receives_.front();
      sends_.pop_front();
      receives_.pop_front();
      send.outcome = receive.outcome = Copy(send, receive);
    }
    if (!closed_) return;
    for (std::deque<Message*>* waiting : {&sends_, &receives_}) {
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
  std::deque<Message*> sends_ ABSL_GUARDED_BY(mutex_);
  std::deque<Message*> receives_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
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
  explicit Network(int n) : size_(n), channels_(static_cast<size_t>(n) * n), board_(n) {}

  int size() const { return size_; }
  Channel& channel(int from, int to) { return channels_[static_cast<size_t>(from) * size_ + to]; }
  Board& board() { return board_; }

  void Close() {
    for (Channel& channel : channels_) channel.Close();
  }

 private:
  const int size_;
  std::vector<Channel> channels_;
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
    network_->channel(rank_, outgoing.to).Send(&started.message);
    return ticket;
  }

  absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) override {
    if (incoming.bytes.empty()) return Ticket();
    const Ticket ticket = NewMessage(incoming.from, /*sends=*/false);
    Started& started = started_[ticket.slot];
    started.message.incoming = incoming.bytes;
    network_->channel(incoming.from, rank_).Receive(&started.message);
    return ticket;
  }

  absl::Status Wait(Ticket ticket, absl::Time deadline) override {
    if (ticket.slot < 0) return absl::OkStatus();
    const Started& started = started_[ticket.slot];
    const Outcome outcome = ChannelOf(started).Await(started.message, deadline);
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
    return ChannelOf(started).Await(started.message, absl::InfinitePast()) != Outcome::kPending;
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

  Channel& ChannelOf(const Started& started) {
    return started.sends ? network_->channel(rank_, started.peer) : network_->channel(started.peer, rank_);
  }

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
    for (int peer = 0; peer < size(); ++peer) {
      network_->channel(rank_, peer).Close();
      network_->channel(peer, rank_).Close();
    }
  }

  const std::shared_ptr<Network> network_;
  const int rank_;
  CallHistory history_;
  std::deque<Started> started_;  // Indexed by Ticket::slot. A deque, because channels point to its messages.
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
