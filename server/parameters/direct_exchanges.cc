#include "server/parameters/direct_exchanges.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"

namespace hooke {
namespace {

// The most connections that are accepted from a socket before openings are looked at again.
constexpr int kAcceptsMax = 64;
// Pause before the next accept if the process has no descriptors left.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
// Sessions are looked through so many times within a message's time-out.
constexpr int kChecksPerTimeout = 8;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

size_t ThreadsFor(size_t asked) {
  if (asked > 0) return asked;
  return std::clamp<size_t>(size_t{2} * std::thread::hardware_concurrency(), 4, 64);
}

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

absl::StatusOr<std::unique_ptr<DirectExchanges>> DirectExchanges::Listen(Options options) {
  absl::StatusOr<ListeningSockets> sockets = ListeningSockets::Open(options.host);
  if (!sockets.ok()) return sockets.status();
  std::unique_ptr<DirectExchanges> exchanges(new DirectExchanges(Bounded(std::move(options)), *std::move(sockets)));
  exchanges->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (exchanges->wake_ < 0) return absl::UnavailableError(absl::StrCat("eventfd: ", std::strerror(errno)));
  if (absl::Status status = exchanges->StartThreads(); !status.ok()) return status;
  return exchanges;
}

absl::Status DirectExchanges::StartThreads() {
  absl::StatusOr<std::unique_ptr<SessionThreads>> threads =
      SessionThreads::Start(ThreadsFor(options_.threads), [this](DirectSession& session) { Serve(session); });
  if (!threads.ok()) return threads.status();
  threads_ = *std::move(threads);
  absl::StatusOr<std::unique_ptr<ShardLoader>> loader = ShardLoader::Start(options_.store);
  if (!loader.ok()) return loader.status();
  loader_ = *std::move(loader);
  options_.store->OnDropped(this, [this] {
    dropped_ = true;
    eventfd_write(wake_, 1);
  });
  try {
    acceptor_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return absl::UnavailableError(absl::StrCat("this server's process can have no more threads (", error.what(),
                                               "); raise its limit (ulimit -u, TasksMax)"));
  }
  return absl::OkStatus();
}

DirectExchanges::DirectExchanges(Options options, ListeningSockets sockets)
    : options_(std::move(options)),
      sockets_(std::move(sockets)),
      look_at_(kNever),
      lobby_(options_.lobby),
      refusals_(100, absl::Minutes(1)),
      troubles_(1, absl::Minutes(1)) {}

DirectExchanges::~DirectExchanges() {
  options_.store->IgnoreDropped(this);
  Stop();
  if (wake_ >= 0) close(wake_);
}

void DirectExchanges::Stop() {
  if (!acceptor_.joinable()) return;
  seats_.Stop();
  stopped_ = true;
  eventfd_write(wake_, 1);
  acceptor_.join();
  loader_->Stop();
  std::set<Shard*> shards;
  for (const auto& [number, session] : sessions_) {
    session->Shutdown();
    shards.insert(session->exchange().shard().get());
  }
  for (Shard* const shard : shards) shard->StopWaiting();
  threads_->Stop();
  {
    // A thread of gRPC that has closed a round may still be telling sessions.
    absl::MutexLock lock(&mutex_);
    const auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return in_rounds_ == 0; };
    mutex_.Await(absl::Condition(&none));
  }
  sessions_.clear();
  loading_.clear();
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
    const absl::Time deadline = accepts ? Deadline() : std::min(Deadline(), accepts_again_);
    if (poll(polled.data(), polled.size(), PollTimeout(now, deadline)) < 0) continue;  // Interrupted.
    now = SteadyTime();
    for (const ConnectionLobby::Opening& opening : lobby_.Receive(now, absl::MakeConstSpan(polled).subspan(own))) {
      Begin(now, opening);
    }
    if (polled[0].revents != 0) {
      eventfd_t times = 0;
      eventfd_read(wake_, &times);
    }
    EndSessions(now);
    OpenLoaded(now);
    Seat(now);
    if (dropped_.exchange(false)) ShutDownDropped();
    if (now >= next_check_) ShutDownExpired(now);
    if (absl::ToUnixNanos(now) >= look_at_) LookAtShards();
    for (size_t listener = 1; listener < own; ++listener) {
      if (polled[listener].revents != 0) Accept(now, polled[listener].fd);
    }
  }
}

absl::Time DirectExchanges::Deadline() const {
  absl::Time deadline = std::min(lobby_.deadline(), next_check_);
  for (DirectSession* session : seatless_) deadline = std::min(deadline, session->seat().give_up());
  return look_at_ == kNever ? deadline : std::min(deadline, absl::FromUnixNanos(look_at_));
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
    // The oldest connection without a session is closed, so that another one can be accepted.
    if (lobby_.CloseOldest()) continue;
    accepts_again_ = now + kAcceptPause;
    return;
  }
}

// Starts the session of a connection whose opening has arrived. A peer that may not exchange is refused before it gets
// a seat.
void DirectExchanges::Begin(absl::Time now, const ConnectionLobby::Opening& opening) {
  if (!opening.sender.ok()) return Refuse(now, opening.descriptor, opening.sender.status());
  if (sessions_.size() + loading_.size() >= options_.sessions_max) {
    return Refuse(now, opening.descriptor,
                  absl::UnavailableError(absl::StrCat("this server has ", sessions_.size() + loading_.size(),
                                                      " direct exchanges, all that it takes; try again")));
  }
  DirectSession::Options options;
  options.descriptor = opening.descriptor;
  options.store = options_.store;
  options.seats = &seats_;
  options.number = ++begun_;
  options.message_timeout = options_.message_timeout;
  options.resumes = [this](DirectSession& session) {
    // Once posted, the session may end, and this function with it.
    DirectExchanges* const self = this;
    self->threads_->Post(session);
    self->LeaveRounds();
  };
  Open(now, std::make_unique<DirectSession>(std::move(options)), *opening.sender);
}

void DirectExchanges::Open(absl::Time now, std::unique_ptr<DirectSession> session, const v1::Sender& sender) {
  const uint64_t number = session->number();
  const std::optional<absl::Status> status = session->exchange().Open(sender);
  if (!status.has_value()) {
    loading_[number] = {std::move(session), sender};
    return loader_->Load(sender.job_id(), [this, number](absl::Status loaded) {
      absl::MutexLock lock(&mutex_);
      loaded_.emplace_back(number, std::move(loaded));
      eventfd_write(wake_, 1);
    });
  }
  if (!status->ok()) return Refuse(now, session->Release(), *status);
  if (sessions_.empty()) next_check_ = now + options_.message_timeout / kChecksPerTimeout;
  seatless_.push_back(session.get());
  sessions_.emplace(number, std::move(session));
}

void DirectExchanges::OpenLoaded(absl::Time now) {
  std::vector<std::pair<uint64_t, absl::Status>> loaded;
  {
    absl::MutexLock lock(&mutex_);
    loaded.swap(loaded_);
  }
  for (const auto& [number, status] : loaded) {
    Loading opens = std::move(loading_.extract(number).mapped());
    if (status.ok()) {
      Open(now, std::move(opens.session), opens.sender);
    } else {
      Refuse(now, opens.session->Release(), status);
    }
  }
}

void DirectExchanges::Seat(absl::Time now) {
  for (DirectSession* session : std::exchange(seatless_, {})) {
    std::optional<absl::Status> seated = session->seat().TryTakeSeat(session->exchange().sender());
    if (!seated.has_value()) {
      seatless_.push_back(session);
      continue;
    }
    if (seated->ok() && threads_->Await(*session, session->descriptor(), EPOLLIN)) continue;
    if (seated->ok()) seated = absl::UnavailableError("this server cannot watch another connection; try again");
    const auto found = sessions_.find(session->number());
    Refuse(now, session->Release(), *seated);
    sessions_.erase(found);
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
  std::vector<uint64_t> ended;
  {
    absl::MutexLock lock(&mutex_);
    ended.swap(ended_);
  }
  for (const uint64_t number : ended) End(now, number);
  if (sessions_.empty()) next_check_ = absl::InfiniteFuture();
}

void DirectExchanges::End(absl::Time now, uint64_t number) {
  const auto found = sessions_.find(number);
  DirectSession& session = *found->second;
  threads_->Forget(session.descriptor());
  const absl::Status refusal = session.refusal();
  if (!refusal.ok()) Refuse(now, session.Release(), refusal);
  sessions_.erase(found);
}

void DirectExchanges::ShutDownExpired(absl::Time now) {
  for (const auto& [number, session] : sessions_) {
    if (now >= session->expires()) session->Shutdown();
  }
  next_check_ = now + options_.message_timeout / kChecksPerTimeout;
}

// An exchange that waited in a round has been refused already. A peer that was silent learns when it connects again
// that its job or its generation has ended.
void DirectExchanges::ShutDownDropped() {
  for (const auto& [number, session] : sessions_) {
    if (session->exchange().shard()->closed()) session->Shutdown();
  }
}

// If a shard gets an earlier deadline meanwhile, Serve calls LookWithin after that. So the deadline is not missed.
void DirectExchanges::LookAtShards() {
  look_at_ = kNever;
  std::set<Shard*> shards;
  for (const auto& [number, session] : sessions_) shards.insert(session->exchange().shard().get());
  for (Shard* shard : shards) {
    if (shard->until_look() <= absl::ZeroDuration()) shard->LookAgain();
    LookWithin(shard->until_look());
  }
}

void DirectExchanges::LookWithin(absl::Duration until) {
  if (until == absl::InfiniteDuration()) return;
  const int64_t at = absl::ToUnixNanos(SteadyTime() + until);
  int64_t known = look_at_;
  while (at < known) {
    if (!look_at_.compare_exchange_weak(known, at)) continue;
    eventfd_write(wake_, 1);
    return;
  }
}

// A session that waits for other groups may be served by another thread at once. So it is not touched after GoOn.
void DirectExchanges::Serve(DirectSession& session) {
  const std::shared_ptr<Shard> shard =
      session.exchange().shard()->plan().turns_may_wait() ? session.exchange().shard() : nullptr;
  if (shard != nullptr) EnterRounds();
  const DirectSession::Next next = session.GoOn([this] { return threads_->half_idle(); });
  if (next == DirectSession::Next::kOthers) return LookWithin(shard->until_look());
  if (next == DirectSession::Next::kEnded) {
    NoteEnded(session);
  } else {
    const uint32_t events = next == DirectSession::Next::kMessage ? EPOLLIN : EPOLLOUT;
    if (!threads_->Await(session, session.descriptor(), events)) NoteEnded(session);
  }
  if (shard != nullptr) LeaveRounds();
}

void DirectExchanges::NoteEnded(const DirectSession& session) {
  {
    absl::MutexLock lock(&mutex_);
    ended_.push_back(session.number());
  }
  eventfd_write(wake_, 1);
}

void DirectExchanges::EnterRounds() {
  absl::MutexLock lock(&mutex_);
  ++in_rounds_;
}

void DirectExchanges::LeaveRounds() {
  absl::MutexLock lock(&mutex_);
  --in_rounds_;
}

}  // namespace hooke
