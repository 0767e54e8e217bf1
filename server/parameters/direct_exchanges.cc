#include "server/parameters/direct_exchanges.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/parameters/exchange_session.h"

namespace hooke {
namespace {

constexpr int kBacklog = 256;
// Of ranks: each group's rank has one.
constexpr size_t kConnectionsMax = 8192;
// Who connects and does not say who it is in this time is none of ours.
constexpr absl::Duration kOpeningTimeout = absl::Seconds(10);
// For a peer to read why it is refused.
constexpr absl::Duration kRefusalTimeout = absl::Seconds(2);
// For a peer to read an answer, 1 MiB at most: over the slowest of links, too. One that reads nothing at all is given
// up earlier by TCP.
constexpr absl::Duration kSendTimeout = absl::Minutes(2);
// Before the next try, where the process has no more descriptors.
constexpr int kAcceptPauseMs = 100;

absl::Status Failure(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<int> ListenTcp(const std::string& host, uint16_t* port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(host.c_str(), "0", &hints, &found); code != 0)
    return absl::UnavailableError(absl::StrCat(host, ": ", gai_strerror(code)));
  const auto freer = absl::MakeCleanup([found] { freeaddrinfo(found); });
  const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own = {};
  socklen_t length = sizeof own;
  if (listener >= 0 && bind(listener, found->ai_addr, found->ai_addrlen) == 0 && listen(listener, kBacklog) == 0 &&
      getsockname(listener, reinterpret_cast<sockaddr*>(&own), &length) == 0) {
    // The port lies at the same place in both kinds of addresses.
    *port = ntohs(reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
    return listener;
  }
  absl::Status status = Failure(host);
  if (listener >= 0) close(listener);
  return status;
}

// In the abstract namespace: it is gone with its process, whatever ends that, and has no folder.
absl::StatusOr<int> ListenLocally(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const socklen_t length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener >= 0 && bind(listener, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
      listen(listener, kBacklog) == 0) {
    return listener;
  }
  absl::Status status = Failure("a Unix socket");
  if (listener >= 0) close(listener);
  return status;
}

// A name that no other host has: who can connect to it is on this host.
std::string RandomName() {
  std::random_device random;
  std::string name = "hooke-";
  for (int i = 0; i < 4; ++i) absl::StrAppend(&name, absl::Hex(random(), absl::kZeroPad8));
  return name;
}

}  // namespace

DirectExchanges::Connection::Connection(int descriptor, uint64_t number)
    : socket(descriptor, kSendTimeout), number(number) {}

absl::StatusOr<std::unique_ptr<DirectExchanges>> DirectExchanges::Listen(Options options) {
  std::unique_ptr<DirectExchanges> exchanges(new DirectExchanges(std::move(options)));
  if (absl::Status status = exchanges->Open(); !status.ok()) return status;
  return exchanges;
}

absl::Status DirectExchanges::Open() {
  absl::StatusOr<int> tcp = ListenTcp(options_.host, &port_);
  if (!tcp.ok()) return tcp.status();
  tcp_ = *tcp;
  local_name_ = RandomName();
  absl::StatusOr<int> local = ListenLocally(local_name_);
  if (!local.ok()) return local.status();
  local_ = *local;
  wake_ = eventfd(0, EFD_CLOEXEC);
  if (wake_ < 0) return Failure("eventfd");
  acceptor_ = std::thread([this] { AcceptAll(); });
  return absl::OkStatus();
}

DirectExchanges::~DirectExchanges() {
  Stop();
  for (const int descriptor : {tcp_, local_, wake_}) {
    if (descriptor >= 0) close(descriptor);
  }
}

void DirectExchanges::Stop() {
  if (!acceptor_.joinable()) return;
  seats_.Stop();
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    for (Connection& connection : connections_) connection.socket.Shutdown();
  }
  eventfd_write(wake_, 1);
  acceptor_.join();
  std::list<Connection> connections;
  {
    absl::MutexLock lock(&mutex_);
    connections.swap(connections_);
  }
  for (Connection& connection : connections) connection.thread.join();
}

void DirectExchanges::AcceptAll() {
  while (true) {
    pollfd waiting[] = {{wake_, POLLIN, 0}, {tcp_, POLLIN, 0}, {local_, POLLIN, 0}};
    if (poll(waiting, 3, -1) < 0) continue;  // Interrupted.
    if (waiting[0].revents != 0) return;
    for (const pollfd& listener : {waiting[1], waiting[2]}) {
      if (listener.revents != 0) Accept(listener.fd);
    }
  }
}

void DirectExchanges::Accept(int listener) {
  const int descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0) {
    pollfd stopping = {wake_, POLLIN, 0};
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) poll(&stopping, 1, kAcceptPauseMs);
    return;
  }
  Reap();
  absl::MutexLock lock(&mutex_);
  if (stopped_ || connections_.size() >= kConnectionsMax) {
    close(descriptor);
    return;
  }
  Connection& connection = connections_.emplace_back(descriptor, ++accepted_);
  try {
    connection.thread = std::thread([this, &connection] { Serve(connection); });
  } catch (const std::system_error&) {
    // No more threads: the connection is closed, and the client tries again.
    connections_.pop_back();
  }
}

// Joins threads that have nothing left to do.
void DirectExchanges::Reap() {
  std::list<Connection> ended;
  absl::MutexLock lock(&mutex_);
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto next = std::next(it);
    if (it->ended) ended.splice(ended.end(), connections_, it);
    it = next;
  }
  for (Connection& connection : ended) connection.thread.join();
}

void DirectExchanges::Serve(Connection& connection) {
  const absl::Status refusal = RunExchange(connection);
  if (!refusal.ok()) {
    options_.logger->warn("a direct exchange is refused: {}", refusal.ToString());
    connection.socket.SendRefusal(refusal, kRefusalTimeout);
  }
  // Who still sends is told; the descriptor itself is closed when the thread is joined.
  connection.socket.Shutdown();
  connection.ended = true;
}

// What the peer is refused; OK where the connection has ended.
absl::Status DirectExchanges::RunExchange(Connection& connection) {
  FrameSocket& socket = connection.socket;
  const auto ended = [](const absl::Status& status) {
    return absl::IsInvalidArgument(status) ? status : absl::OkStatus();
  };
  absl::StatusOr<v1::Sender> sender = socket.ReceiveOpening(kOpeningTimeout);
  if (!sender.ok()) return ended(sender.status());
  ExchangeSession session(options_.store);
  if (absl::Status status = session.Open(*sender); !status.ok()) return status;
  RankSeats::Stream stream(&seats_, connection.number, [&socket] { socket.Shutdown(); });
  if (absl::Status status = stream.TakeSeat(*sender); !status.ok()) return status;
  std::vector<float> values;
  std::vector<float> answer;
  while (true) {
    absl::StatusOr<FrameSocket::Header> received = socket.ReceiveHeader();
    if (!received.ok()) return ended(received.status());
    if (!received->refusal.ok()) return absl::InvalidArgumentError("a refusal, which is a server's");
    const ValuesHeader& header = received->values;
    if (absl::Status status = session.CheckHeader(header); !status.ok()) return status;
    const ValuesHeader answer_header = session.AnswerHeader(header);
    const absl::Span<char> payload = PayloadIn(values, header);
    const absl::Span<char> answered = PayloadIn(answer, answer_header);
    if (absl::Status status = socket.ReceivePayload(payload); !status.ok()) return ended(status);
    if (absl::Status status = session.Apply(header, payload, answered); !status.ok()) return status;
    if (absl::Status status = socket.SendPayload(answer_header, answered); !status.ok()) return ended(status);
  }
}

}  // namespace hooke
