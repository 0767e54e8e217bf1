#include "server/parameters/direct_exchanges.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"

namespace hooke {
namespace {

// How long a peer may take to read an answer, at most 1 MiB, or to send the rest of a message. It is enough for the
// slowest of links. TCP itself gives up earlier on a peer that reads nothing at all.
constexpr absl::Duration kMessageTimeout = absl::Minutes(2);
// Connections that are accepted before openings are looked at again.
constexpr int kAcceptsMax = 64;
// Pause before the next accept if the process has no descriptors left.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

// Limits all connections together to three quarters of the files that this process may open. The rest is for others.
DirectExchanges::Options Bounded(DirectExchanges::Options options) {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return options;
  const auto share = [&files](size_t most, rlim_t part) {
    return static_cast<size_t>(std::max<rlim_t>(1, std::min<rlim_t>(most, files.rlim_cur / part)));
  };
  options.sessions_max = share(options.sessions_max, 2);
  options.lobby.waiting_max = share(options.lobby.waiting_max, 8);
  options.lobby.leaving_max = share(options.lobby.leaving_max, 8);
  return options;
}

int PollTimeout(absl::Time now, absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const absl::Duration left = std::clamp(deadline - now, absl::ZeroDuration(), absl::Minutes(1));
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

bool LacksDescriptors(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS; }

}  // namespace

DirectExchanges::Session::Session(int descriptor, ParameterStore* store, uint64_t number)
    : socket(descriptor, {kMessageTimeout, kMessageTimeout}), number(number), exchange(store) {}

absl::StatusOr<std::unique_ptr<DirectExchanges>> DirectExchanges::Listen(Options options) {
  absl::StatusOr<ListeningSockets> sockets = ListeningSockets::Open(options.host);
  if (!sockets.ok()) return sockets.status();
  std::unique_ptr<DirectExchanges> exchanges(new DirectExchanges(Bounded(std::move(options)), *std::move(sockets)));
  exchanges->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (exchanges->wake_ < 0) return absl::UnavailableError(absl::StrCat("eventfd: ", std::strerror(errno)));
  exchanges->acceptor_ = std::thread([exchanges = exchanges.get()] { exchanges->Run(); });
  return exchanges;
}

DirectExchanges::DirectExchanges(Options options, ListeningSockets sockets)
    : options_(std::move(options)),
      sockets_(std::move(sockets)),
      lobby_(options_.lobby),
      refusals_(100, absl::Minutes(1)),
      troubles_(1, absl::Minutes(1)) {}

DirectExchanges::~DirectExchanges() {
  Stop();
  if (wake_ >= 0) close(wake_);
}

void DirectExchanges::Stop() {
  if (!acceptor_.joinable()) return;
  seats_.Stop();
  stopped_ = true;
  eventfd_write(wake_, 1);
  acceptor_.join();
  for (Session& session : sessions_) session.socket.Shutdown();
  for (Session& session : sessions_) session.thread.join();
  sessions_.clear();
  while (lobby_.CloseOldest()) {
  }
}

void DirectExchanges::Run() {
  std::vector<pollfd> polled;
  while (!stopped_) {
    absl::Time now = SteadyTime();
    const bool accepts = now >= accepts_again_;
    polled.assign({{wake_, POLLIN, 0}});
    if (accepts) polled.insert(polled.end(), {{sockets_.tcp(), POLLIN, 0}, {sockets_.local(), POLLIN, 0}});
    const size_t own = polled.size();
    lobby_.AppendTo(polled);
    const absl::Time deadline = accepts ? lobby_.deadline() : std::min(lobby_.deadline(), accepts_again_);
    if (poll(polled.data(), polled.size(), PollTimeout(now, deadline)) < 0) continue;  // Interrupted.
    now = SteadyTime();
    for (const ConnectionLobby::Opening& opening : lobby_.Receive(now, absl::MakeConstSpan(polled).subspan(own))) {
      Begin(now, opening);
    }
    if (polled[0].revents != 0) {
      eventfd_t times = 0;
      eventfd_read(wake_, &times);
      EndSessions(now);
    }
    for (size_t listener = 1; listener < own; ++listener) {
      if (polled[listener].revents != 0) Accept(now, polled[listener].fd);
    }
  }
}

void DirectExchanges::Accept(absl::Time now, int listener) {
  for (int accepted = 0; accepted < kAcceptsMax; ++accepted) {
    const int descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor >= 0) {
      lobby_.Admit(now, descriptor);
      continue;
    }
    const int error = errno;
    if (!LacksDescriptors(error)) return;
    if (const auto left_out = troubles_.Take(now); left_out.has_value()) {
      options_.logger->error(
          "a direct connection cannot be accepted: {}; this process has too many files open: {} exchanges, {} "
          "connections that have not said who they are; raise the limit (ulimit -n, LimitNOFILE) or find out who "
          "connects",
          std::strerror(error), sessions_.size(), lobby_.waiting());
    }
    // A connection that has sent nothing is closed, so that another one can be accepted.
    if (lobby_.CloseOldest()) continue;
    accepts_again_ = now + kAcceptPause;
    return;
  }
}

// Starts the session of a connection whose opening has arrived. A peer that may not exchange is refused before it gets
// a thread.
void DirectExchanges::Begin(absl::Time now, const ConnectionLobby::Opening& opening) {
  if (!opening.sender.ok()) return Refuse(now, opening.descriptor, opening.sender.status());
  if (sessions_.size() >= options_.sessions_max) {
    return Refuse(now, opening.descriptor,
                  absl::UnavailableError(absl::StrCat("this server has ", sessions_.size(),
                                                      " direct exchanges, all that it takes; try again")));
  }
  Session& session = sessions_.emplace_back(opening.descriptor, options_.store, ++begun_);
  absl::Status status = session.exchange.Open(*opening.sender);
  if (status.ok()) status = Start(session);
  if (status.ok()) return;
  Refuse(now, session.socket.Release(), status);
  sessions_.pop_back();
}

absl::Status DirectExchanges::Start(Session& session) {
  try {
    session.thread = std::thread([this, &session] { Serve(session); });
    return absl::OkStatus();
  } catch (const std::system_error& error) {
    return absl::UnavailableError(absl::StrCat("this server's process can have no more threads (", error.what(),
                                               "); try again, or raise its limit (ulimit -u, TasksMax)"));
  }
}

void DirectExchanges::Refuse(absl::Time now, int descriptor, const absl::Status& refusal) {
  lobby_.Refuse(now, descriptor, refusal);
  const auto left_out = refusals_.Take(now);
  if (!left_out.has_value()) return;
  const std::string more = *left_out > 0 ? absl::StrCat(" (and ", *left_out, " others before)") : "";
  options_.logger->warn("a direct exchange is refused: {}{}", refusal.ToString(), more);
}

void DirectExchanges::EndSessions(absl::Time now) {
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    if (!session->ended) {
      ++session;
      continue;
    }
    session->thread.join();
    if (!session->refusal.ok()) Refuse(now, session->socket.Release(), session->refusal);
    session = sessions_.erase(session);
  }
}

void DirectExchanges::Serve(Session& session) {
  session.refusal = RunExchanges(session);
  session.ended = true;
  eventfd_write(wake_, 1);
}

// Returns why the peer is refused; OK if the connection has ended.
absl::Status DirectExchanges::RunExchanges(Session& session) {
  FrameSocket& socket = session.socket;
  const auto ended = [](const absl::Status& status) {
    return absl::IsInvalidArgument(status) ? status : absl::OkStatus();
  };
  RankSeats::Stream stream(&seats_, session.number, [&socket] { socket.Shutdown(); });
  if (absl::Status status = stream.TakeSeat(session.exchange.sender()); !status.ok()) return status;
  std::vector<float> values;
  std::vector<float> answer;
  while (true) {
    absl::StatusOr<FrameSocket::Header> received = socket.ReceiveHeader();
    if (!received.ok()) return ended(received.status());
    if (!received->refusal.ok()) return absl::InvalidArgumentError("a refusal, which is a server's");
    const ValuesHeader& header = received->values;
    if (absl::Status status = session.exchange.CheckHeader(header); !status.ok()) return status;
    const ValuesHeader answer_header = session.exchange.AnswerHeader(header);
    const absl::Span<char> payload = PayloadIn(values, header);
    const absl::Span<char> answered = PayloadIn(answer, answer_header);
    if (absl::Status status = socket.ReceivePayload(payload); !status.ok()) return ended(status);
    if (absl::Status status = session.exchange.Apply(header, payload, answered); !status.ok()) return status;
    if (absl::Status status = socket.SendPayload(answer_header, answered); !status.ok()) return ended(status);
  }
}

}  // namespace hooke
