#include "mpi_group/sockets/socket_transport.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/sockets/socket_stream.h"
#include "mpi_group/transport/call_label.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// Checking for notices takes as long as starting several messages, so short calls check no more often than this.
constexpr absl::Duration kLook = absl::Milliseconds(1);
// The inner transport moves messages only inside its calls, so sleeps are short while it has any.
constexpr absl::Duration kNap = absl::Microseconds(50);
// The time after which a wait first checks for notices: soon, but so late that most waits have ended before. kWatch is
// the time between later checks.
constexpr absl::Duration kFirstWatch = absl::Milliseconds(1);
constexpr absl::Duration kWatch = absl::Milliseconds(4);
// A failing rank sends a notice before it ends, but the notice may arrive later than the end of its connection.
constexpr absl::Duration kNewsDelay = absl::Milliseconds(200);
// Largest number of connections at which one look for strays looks. If more have bytes to read, the kernel names others
// at the next look.
constexpr size_t kStraysPerLook = 128;

timespec ToPollTime(absl::Duration duration) { return absl::ToTimespec(std::max(duration, absl::ZeroDuration())); }

class TransportOverStreams final : public SocketTransport {
 public:
  TransportOverStreams(Transport& transport, std::vector<FileDescriptor> connections)
      : transport_(transport), watch_(epoll_create1(EPOLL_CLOEXEC)), peers_(connections.size()) {
    if (!watch_.open()) failure_ = absl::ErrnoToStatus(errno, "watching the connections between nodes");
    for (size_t rank = 0; rank < connections.size(); ++rank) {
      if (!connections[rank].open()) continue;
      peers_[rank] = std::make_unique<Peer>(std::move(connections[rank]), static_cast<int>(rank));
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.ptr = peers_[rank].get();
      if (epoll_ctl(watch_.get(), EPOLL_CTL_ADD, peers_[rank]->stream.socket(), &event) != 0 && failure_.ok()) {
        failure_ = absl::ErrnoToStatus(errno, "watching the connections between nodes");
      }
    }
  }

  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }

  void SetPatience(absl::Duration patience) override { patience_ = patience; }

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    if (outgoing.bytes.empty()) return Ticket();
    if (!failure_.ok()) return failure_;
    if (peers_[outgoing.to] == nullptr) return Through(transport_.StartSend(outgoing));
    // A send never writes to the bytes.
    return Start(*peers_[outgoing.to], {const_cast<char*>(outgoing.bytes.data()), outgoing.bytes.size()},
                 /*receives=*/false);
  }

  absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) override {
    if (incoming.bytes.empty()) return Ticket();
    if (!failure_.ok()) return failure_;
    if (peers_[incoming.from] == nullptr) return Through(transport_.StartReceive(incoming));
    return Start(*peers_[incoming.from], incoming.bytes, /*receives=*/true);
  }

  absl::Status Wait(Ticket ticket, absl::Time deadline) override {
    if (ticket.slot < 0) return absl::OkStatus();
    if (!failure_.ok()) return failure_;
    absl::Status status =
        IsThrough(ticket) ? AwaitThrough({ticket.slot / 2}, deadline) : AwaitOwn(ticket.slot / 2, deadline);
    return status.ok() ? status : Fail(status);
  }

  bool IsDone(Ticket ticket) override {
    if (ticket.slot < 0 || !failure_.ok()) return true;
    if (IsThrough(ticket)) return transport_.IsDone({ticket.slot / 2});
    const SocketMessage& message = messages_[ticket.slot / 2];
    if (message.done) return true;
    const absl::StatusOr<bool> moved = MoveAll();
    if (!moved.ok()) Fail(Explain(moved.status())).IgnoreError();  // Wait returns the error.
    return message.done || !failure_.ok();
  }

  void Begin(const CallLabel& label, absl::Time now) override {
    call_ = label;
    fingerprint_ = label.Fingerprint();
    if (now >= next_look_) {
      look_due_ = true;
      next_look_ = now + kLook;
    }
    transport_.Begin(label, now);
  }

  absl::Status CheckNotices() override { return transport_.CheckNotices(); }

  void HearLost(int rank) override { transport_.HearLost(rank); }

  absl::Status Settle(const absl::Status& failure, absl::Time until) override {
    if (failure_.ok()) failure_ = failure;
    Drop();
    return transport_.Settle(failure, until);
  }

 private:
  // A rank to which there is a connection.
  struct Peer {
    Peer(FileDescriptor socket, int rank) : stream(std::move(socket), rank) {}

    SocketStream stream;
    bool busy = false;  // True if it is in `busy_`.
  };

  // True for a ticket of the inner transport. Its slot is odd; messages over sockets have even slots.
  static bool IsThrough(Ticket ticket) { return ticket.slot % 2 == 1; }

  absl::StatusOr<Ticket> Through(absl::StatusOr<Ticket> ticket) {
    if (!ticket.ok() || ticket->slot < 0) return ticket;
    ++through_;
    return Ticket{2 * ticket->slot + 1};
  }

  absl::StatusOr<Ticket> Start(Peer& peer, absl::Span<char> bytes, bool receives) {
    if (free_.empty()) {
      free_.push_back(static_cast<int>(messages_.size()));
      messages_.emplace_back();
    }
    const int slot = free_.back();
    free_.pop_back();
    messages_[slot] = {
        {call_.number, bytes.size(), fingerprint_}, bytes.data(), 0, peer.stream.peer(), receives, false};
    peer.stream.Start(&messages_[slot]);
    if (!peer.busy) {
      peer.busy = true;
      busy_.push_back(&peer);
    }
    if (receives) return Ticket{2 * slot};
    // Sends at once, so that the link is not idle until this rank waits.
    const absl::StatusOr<bool> moved = peer.stream.MoveOut();
    if (!moved.ok()) return Fail(Explain(moved.status()));
    // Most sends end here. If the peer is not the last busy one, MoveAll takes it off the list.
    if (peer.stream.idle() && busy_.back() == &peer) {
      peer.busy = false;
      busy_.pop_back();
    }
    if (look_due_) {
      // Other ranks may have given up the call before this rank entered it.
      look_due_ = false;
      absl::Status status = transport_.CheckNotices();
      if (!status.ok()) return Fail(status);
    }
    return Ticket{2 * slot};
  }

  // Makes every later call return this status.
  absl::Status Fail(const absl::Status& status) {
    failure_ = status;
    Drop();
    return failure_;
  }

  absl::Status AwaitOwn(int slot, absl::Time deadline) {
    const SocketMessage& message = messages_[slot];
    absl::Status status = MoveUntil([&message] { return message.done; }, deadline);
    if (!status.ok()) return status;
    if (message.done) {
      free_.push_back(slot);
      return status;
    }
    return absl::DeadlineExceededError(absl::StrCat("waited for rank ", message.peer, " until the deadline (",
                                                    message.receives ? "receiving from" : "sending to", " it)"));
  }

  absl::Status AwaitThrough(Ticket ticket, absl::Time deadline) {
    absl::Status status = MoveUntil([this, ticket] { return busy_.empty() || transport_.IsDone(ticket); }, deadline);
    if (status.ok()) status = transport_.Wait(ticket, deadline);
    if (status.ok()) --through_;
    return status;
  }

  // Moves bytes until enough() is true, an error, or the deadline. It returns OK after the deadline too, because the
  // caller checks the deadline.
  //
  // While patience lasts the rank polls, and yields its core after each poll in vain. This wait may end only once
  // others have had that core. One is the kernel, which receives at full speed in a thread of its own. Others are the
  // peer, if ranks share cores, and this rank's own computation.
  absl::Status MoveUntil(absl::FunctionRef<bool()> enough, absl::Time deadline) {
    if (enough()) return absl::OkStatus();
    absl::Time last_moved = SteadyNow();
    absl::Time next_watch = last_moved + kFirstWatch;
    while (true) {
      const absl::StatusOr<bool> moved = MoveAll();
      if (!moved.ok()) return Explain(moved.status());
      if (enough()) return absl::OkStatus();
      const absl::Time now = SteadyNow();
      if (now >= deadline) return absl::OkStatus();
      const bool watch = now >= next_watch;
      // CheckNotices also moves the inner transport's messages.
      absl::Status status = watch || through_ > 0 ? transport_.CheckNotices() : absl::OkStatus();
      if (status.ok() && watch) status = LookForStrays();
      if (!status.ok()) return status;
      if (watch) next_watch = now + kWatch;
      if (*moved) {
        last_moved = now;
      } else if (now - last_moved < patience_) {
        sched_yield();
      } else {
        Sleep(through_ > 0 ? kNap : std::min(next_watch, deadline) - now);
      }
    }
  }

  absl::StatusOr<bool> MoveAll() {
    bool any = false;
    size_t still_busy = 0;
    for (Peer* const peer : busy_) {
      const absl::StatusOr<bool> moved = peer->stream.Move();
      if (!moved.ok()) return moved.status();  // The caller fails, which clears the list.
      any = any || *moved;
      peer->busy = !peer->stream.idle();
      if (peer->busy) busy_[still_busy++] = peer;
    }
    busy_.resize(still_busy);
    return any;
  }

  // Sleeps until some connection is ready.
  void Sleep(absl::Duration at_most) {
    polled_.clear();
    for (const Peer* peer : busy_) polled_.push_back({peer->stream.socket(), peer->stream.events(), 0});
    const timespec time = ToPollTime(at_most);
    ppoll(polled_.data(), polled_.size(), &time, nullptr);
  }

  // Looks only at connections that have bytes to read. LookForStray reads no more than a message's header. So a
  // connection stays among them until a receive takes the message.
  absl::Status LookForStrays() {
    std::array<epoll_event, kStraysPerLook> ready;
    const int count = epoll_wait(watch_.get(), ready.data(), ready.size(), /*timeout=*/0);
    for (int i = 0; i < count; ++i) {
      absl::Status status = static_cast<Peer*>(ready[i].data.ptr)->stream.LookForStray(call_.number, fingerprint_);
      if (!status.ok()) return Explain(status);
    }
    return absl::OkStatus();
  }

  // Adds details to a stream's error: the call that this rank is in, or the notice of the rank that failed.
  absl::Status Explain(const absl::Status& status) {
    if (absl::IsInvalidArgument(status)) {
      return absl::InvalidArgumentError(absl::StrCat(status.message(), " (this rank: ", call_.Text(), ")"));
    }
    for (const absl::Time until = SteadyNow() + kNewsDelay; SteadyNow() < until; absl::SleepFor(kNap)) {
      absl::Status news = transport_.CheckNotices();
      if (!news.ok()) return news;
    }
    return status;
  }

  void Drop() {
    for (const std::unique_ptr<Peer>& peer : peers_) {
      if (peer == nullptr) continue;
      peer->stream.Drop();
      peer->busy = false;
    }
    busy_.clear();
  }

  Transport& transport_;
  const FileDescriptor watch_;                // An epoll instance over all connections.
  std::vector<std::unique_ptr<Peer>> peers_;  // Indexed by rank; null if the inner transport serves the rank.
  std::vector<Peer*> busy_;                   // The peers with messages under way.
  std::deque<SocketMessage> messages_;  // Indexed by Ticket::slot / 2. A deque, because streams point to its messages.
  std::vector<int> free_;               // Free slots of `messages_`.
  std::vector<pollfd> polled_;          // A member only to keep its memory between waits.
  CallLabel call_;
  uint32_t fingerprint_ = CallLabel().Fingerprint();
  int through_ = 0;  // Number of messages under way in the inner transport.
  absl::Duration patience_ = SocketPatienceFor(/*enough_cores=*/false);
  absl::Time next_look_ = absl::InfinitePast();  // The first call after this time checks for notices.
  bool look_due_ = false;                        // A check is due after the next send.
  absl::Status failure_;
};

}  // namespace

absl::Duration SocketPatienceFor(bool enough_cores) { return absl::Microseconds(enough_cores ? 200 : 50); }

std::unique_ptr<SocketTransport> MakeSocketTransport(Transport& transport, std::vector<FileDescriptor> connections) {
  return std::make_unique<TransportOverStreams>(transport, std::move(connections));
}

}  // namespace hooke
