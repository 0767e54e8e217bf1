#include "wire/http/request_lobby.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "clocks/steady_time.h"

namespace hooke {
namespace {

// After a failure, such as too many open files, the next connection waits this long. Without the pause the thread would
// try without end.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
constexpr absl::string_view kHeadEnd = "\r\n\r\n";
constexpr absl::string_view kTooLong =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

int PollMilliseconds(absl::Duration wait) {
  if (wait == absl::InfiniteDuration()) return -1;
  return static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)))));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RequestLobby>> RequestLobby::Start(ListeningPort listening,
                                                                  RequestLobbyOptions options) {
  const int wake = eventfd(0, EFD_CLOEXEC);
  if (wake < 0) return absl::UnavailableError("this process has too many open files");
  return std::unique_ptr<RequestLobby>(new RequestLobby(std::move(listening), std::move(options), wake));
}

RequestLobby::RequestLobby(ListeningPort listening, RequestLobbyOptions options, int wake)
    : listening_(std::move(listening)), options_(std::move(options)), wake_(wake), thread_([this] { Run(); }) {}

RequestLobby::~RequestLobby() {
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
  thread_.join();
  for (const Waiting& connection : waiting_) close(connection.descriptor);
  close(wake_);
}

void RequestLobby::Run() {
  std::vector<pollfd> polled;
  while (true) {
    absl::Time now = SteadyTime();
    while (!waiting_.empty() && waiting_.front().expires <= now) {
      close(waiting_.front().descriptor);
      waiting_.pop_front();
    }
    absl::Duration wait = waiting_.empty() ? absl::InfiniteDuration() : waiting_.front().expires - now;
    const bool accepts = accept_at_ <= now;
    if (!accepts) wait = std::min(wait, accept_at_ - now);
    polled = {{wake_, POLLIN, 0}, {accepts ? listening_.descriptor() : -1, POLLIN, 0}};
    for (const Waiting& connection : waiting_) polled.push_back({connection.descriptor, POLLIN, 0});
    if (poll(polled.data(), polled.size(), PollMilliseconds(wait)) <= 0) continue;
    if (polled[0].revents != 0) return;
    size_t index = 2;
    for (auto it = waiting_.begin(); it != waiting_.end(); ++index) {
      it = polled[index].revents == 0 || Receive(*it) ? std::next(it) : waiting_.erase(it);
    }
    now = SteadyTime();
    if (polled[1].revents != 0) Accept(now);
  }
}

void RequestLobby::Accept(absl::Time now) {
  const int descriptor = accept4(listening_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) accept_at_ = now + kAcceptPause;
    return;
  }
  if (waiting_.size() >= options_.connections_max) {
    close(waiting_.front().descriptor);
    waiting_.pop_front();
  }
  waiting_.push_back({descriptor, "", now + options_.receive_within});
}

bool RequestLobby::Receive(Waiting& connection) {
  char bytes[4096];
  const ssize_t count = recv(connection.descriptor, bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (count <= 0) {
    close(connection.descriptor);
    return false;
  }
  // The end of the head may lie across two pieces.
  const size_t from = connection.received.size() < kHeadEnd.size() ? 0 : connection.received.size() - kHeadEnd.size();
  connection.received.append(bytes, static_cast<size_t>(count));
  if (connection.received.find(kHeadEnd.data(), from, kHeadEnd.size()) != std::string::npos) {
    options_.arrived({connection.descriptor, std::move(connection.received)});
    return false;
  }
  if (connection.received.size() <= options_.head_bytes_max) return true;
  (void)send(connection.descriptor, kTooLong.data(), kTooLong.size(), MSG_NOSIGNAL);
  close(connection.descriptor);
  return false;
}

}  // namespace hooke
