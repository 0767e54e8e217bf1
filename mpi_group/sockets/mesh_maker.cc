#include "mpi_group/sockets/mesh_maker.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// How many accepted connections may wait for their greeting at a time, besides one per higher rank. If there are more,
// the oldest one is closed.
constexpr size_t kSilentVisitors = 16;

void SendAtOnce(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

// Sends a greeting; true if it was sent. A greeting always fits into a new connection's buffer, so it is sent whole or
// not at all.
bool Say(int socket, const Greeting& greeting) {
  return send(socket, &greeting, sizeof(greeting), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(greeting);
}

// How long an address may take to let a connection be made, if there is another one to try. A live host's kernel does
// that by itself, however busy its ranks are.
constexpr absl::Duration kNextAddress = absl::Seconds(1);

enum class Heard { kNotYet, kAll, kEnd };

Heard HearGreeting(int socket, Greeting& greeting, size_t& received) {
  const ssize_t count =
      recv(socket, reinterpret_cast<char*>(&greeting) + received, sizeof(greeting) - received, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Heard::kNotYet;
  if (count <= 0) return Heard::kEnd;
  received += static_cast<size_t>(count);
  return received == sizeof(greeting) ? Heard::kAll : Heard::kNotYet;
}

absl::StatusOr<Listener> ListenOn(const SocketAddress& where) {
  FileDescriptor made(socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.open()) return absl::ErrnoToStatus(errno, "socket");
  const int no = 0;
  // An IPv6 socket that also takes IPv4 connections.
  if (where.storage.ss_family == AF_INET6) setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  SocketAddress bound = where;
  auto* const address = reinterpret_cast<sockaddr*>(&bound.storage);
  if (bind(made.get(), address, where.bytes) != 0) return absl::ErrnoToStatus(errno, "bind");
  if (listen(made.get(), SOMAXCONN) != 0) return absl::ErrnoToStatus(errno, "listen");
  if (getsockname(made.get(), address, &bound.bytes) != 0) return absl::ErrnoToStatus(errno, "getsockname");
  const uint16_t port = bound.storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                                            : reinterpret_cast<sockaddr_in*>(address)->sin_port;
  return Listener{std::move(made), ntohs(port)};
}

}  // namespace

absl::StatusOr<Listener> ListenAnywhere() {
  HostAddress any;
  any.family = 6;
  absl::StatusOr<Listener> both = ListenOn(ToSocketAddress(any, 0));
  if (both.ok()) return both;
  any.family = 4;
  return ListenOn(ToSocketAddress(any, 0));
}

absl::StatusOr<Listener> ListenOnLoopback() { return ListenOn(ToSocketAddress(LoopbackAddress(), 0)); }

MeshMaker::MeshMaker(Options options, FileDescriptor listener)
    : options_(std::move(options)), listener_(std::move(listener)), connections_(options_.ranks) {
  for (const MeshPeer& peer : options_.below) {
    attempts_.emplace_back();
    attempts_.back().peer = &peer;
  }
}

std::string MeshMaker::Run(absl::Time until) {
  while (!Complete()) {
    const absl::Time now = SteadyNow();
    if (now >= until) return Missing();
    for (Attempt& attempt : attempts_) {
      if (connections_[attempt.peer->rank].open()) continue;
      if (attempt.socket.open() && now >= attempt.until) Fail(attempt, "no answer");
      const bool last = attempt.tried == attempt.peer->addresses.size();
      if (attempt.socket.open() && !attempt.connected && !last && now >= attempt.connect_by) {
        Fail(attempt, "no connection");
      }
      if (!attempt.socket.open() && !StartNext(attempt, now, until)) return Missing();
    }
    Wait(until);
    AcceptVisitors();
    for (Visitor& visitor : visitors_) Hear(visitor);
    const auto gone = [](const Visitor& visitor) { return !visitor.socket.open(); };
    visitors_.erase(std::remove_if(visitors_.begin(), visitors_.end(), gone), visitors_.end());
    for (Attempt& attempt : attempts_) Advance(attempt);
  }
  return "";
}

bool MeshMaker::Complete() const {
  const auto connected = [this](int rank) { return connections_[rank].open(); };
  return std::all_of(options_.above.begin(), options_.above.end(), connected) &&
         std::all_of(options_.below.begin(), options_.below.end(),
                     [&connected](const MeshPeer& peer) { return connected(peer.rank); });
}

bool MeshMaker::StartNext(Attempt& attempt, absl::Time now, absl::Time until) {
  const size_t count = attempt.peer->addresses.size();
  while (attempt.tried < count) {
    // The remaining addresses share the remaining time.
    attempt.until = now + (until - now) / static_cast<int64_t>(count - attempt.tried);
    attempt.connect_by = now + kNextAddress;
    const SocketAddress address = ToSocketAddress(attempt.peer->addresses[attempt.tried++], attempt.peer->port);
    attempt.socket = FileDescriptor(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    attempt.connected = false;
    attempt.received = 0;
    if (attempt.socket.open() &&
        (connect(attempt.socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.bytes) == 0 ||
         errno == EINPROGRESS)) {
      return true;
    }
    Fail(attempt, absl::StrCat(absl::ErrnoToStatus(errno, "connect").message()));
  }
  return false;
}

void MeshMaker::Fail(Attempt& attempt, const std::string& what) {
  absl::StrAppend(&attempt.mistakes, attempt.mistakes.empty() ? "" : ", ",
                  TextOf(attempt.peer->addresses[attempt.tried - 1]), ": ", what);
  attempt.socket = FileDescriptor();
}

// Goes on with an attempt, as far as its socket is ready. Called when any of the sockets may be ready.
void MeshMaker::Advance(Attempt& attempt) {
  if (!attempt.socket.open()) return;
  const int socket = attempt.socket.get();
  if (!attempt.connected) {
    pollfd writable = {socket, POLLOUT, 0};
    if (poll(&writable, 1, 0) <= 0) return;
    int error = 0;
    socklen_t bytes = sizeof(error);
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error != 0) return Fail(attempt, absl::StrCat(absl::ErrnoToStatus(error, "connect").message()));
    SendAtOnce(socket);
    if (!Say(socket, {Greeting::kMagic, options_.token, options_.rank, attempt.peer->rank})) {
      return Fail(attempt, "the connection ended");
    }
    attempt.connected = true;
  }
  const Heard heard = HearGreeting(socket, attempt.answer, attempt.received);
  if (heard == Heard::kNotYet) return;
  const Greeting expected = {Greeting::kMagic, options_.token, attempt.peer->rank, options_.rank};
  if (heard == Heard::kEnd || !(attempt.answer == expected)) return Fail(attempt, "another program answers there");
  connections_[attempt.peer->rank] = std::move(attempt.socket);
}

void MeshMaker::AcceptVisitors() {
  while (true) {
    FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) return;
    if (visitors_.size() >= kSilentVisitors + options_.above.size()) visitors_.pop_front();
    visitors_.emplace_back();
    visitors_.back().socket = std::move(socket);
  }
}

void MeshMaker::Hear(Visitor& visitor) {
  const Heard heard = HearGreeting(visitor.socket.get(), visitor.greeting, visitor.received);
  if (heard == Heard::kNotYet) return;
  FileDescriptor socket = std::move(visitor.socket);
  if (heard == Heard::kEnd) return;
  const int from = visitor.greeting.from;
  const Greeting expected = {Greeting::kMagic, options_.token, from, options_.rank};
  const auto& above = options_.above;
  if (!(visitor.greeting == expected) || std::find(above.begin(), above.end(), from) == above.end()) return;
  SendAtOnce(socket.get());
  if (!Say(socket.get(), {Greeting::kMagic, options_.token, options_.rank, from})) return;
  // Replaces an earlier connection of this peer, which must have given that one up.
  connections_[from] = std::move(socket);
}

void MeshMaker::Wait(absl::Time until) {
  std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
  for (const Visitor& visitor : visitors_) polled.push_back({visitor.socket.get(), POLLIN, 0});
  for (const Attempt& attempt : attempts_) {
    if (!attempt.socket.open()) continue;
    polled.push_back({attempt.socket.get(), static_cast<int16_t>(attempt.connected ? POLLIN : POLLOUT), 0});
    until = std::min(until, attempt.until);
    if (!attempt.connected) until = std::min(until, attempt.connect_by);
  }
  const int64_t milliseconds = absl::ToInt64Milliseconds(until - SteadyNow()) + 1;
  poll(polled.data(), polled.size(), static_cast<int>(std::clamp<int64_t>(milliseconds, 0, 1000)));
}

std::string MeshMaker::Missing() const {
  for (const Attempt& attempt : attempts_) {
    if (connections_[attempt.peer->rank].open()) continue;
    return absl::StrCat("rank ", options_.rank, " cannot connect to rank ", attempt.peer->rank, " (",
                        attempt.mistakes.empty() ? "no answer" : attempt.mistakes, ")");
  }
  for (int rank : options_.above) {
    if (connections_[rank].open()) continue;
    return absl::StrCat("rank ", rank, " did not connect to rank ", options_.rank);
  }
  return "";
}

}  // namespace hooke
