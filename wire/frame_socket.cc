#include "wire/frame_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "wire/stream_options.h"

namespace hooke {
namespace {

constexpr absl::Duration kConnectPoll = absl::Milliseconds(50);
// A wait longer than this is cut into several, because poll counts milliseconds in an int.
constexpr absl::Duration kPollMax = absl::Minutes(1);

absl::Status Broken(absl::string_view doing) {
  return absl::UnavailableError(absl::StrCat(doing, ": ", std::strerror(errno)));
}

// Waits for the poll events `events`. Returns false if the deadline has passed. The end of the connection counts as an
// event, too.
bool PollUntil(int descriptor, short events, absl::Time deadline) {
  while (true) {
    // A thread that runs late still looks, because what it waits for may be there.
    const absl::Duration left = std::max(deadline - SteadyTime(), absl::ZeroDuration());
    pollfd waiting = {descriptor, events, 0};
    const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(std::min(left, kPollMax), absl::Milliseconds(1)));
    const int found = poll(&waiting, 1, static_cast<int>(milliseconds));
    if (found > 0 || (found < 0 && errno != EINTR)) return true;
    if (left == absl::ZeroDuration()) return false;
  }
}

absl::Status AwaitConnection(int descriptor, absl::Time deadline, const std::function<bool()>& cancelled) {
  for (bool late = false; !late && !cancelled();) {
    late = SteadyTime() >= deadline;
    if (!PollUntil(descriptor, POLLOUT, std::min(deadline, SteadyTime() + kConnectPoll))) continue;
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0) return absl::OkStatus();
    if (error != 0) errno = error;
    return Broken("connecting");
  }
  return absl::UnavailableError("connecting: nobody answers");
}

}  // namespace

FrameSocket::FrameSocket(int descriptor) : descriptor_(descriptor) { SetStreamOptions(descriptor); }

FrameSocket::~FrameSocket() { close(descriptor_); }

void FrameSocket::Shutdown() { shutdown(descriptor_, SHUT_RDWR); }

absl::Status FrameSocket::SendOpening(const v1::Sender& sender) { return Send(EncodeOpening(sender), {}); }

absl::Status FrameSocket::SendPayload(const ValuesHeader& header, absl::Span<const char> payload) {
  char bytes[kValuesHeaderBytes];
  EncodeValuesHeader(header, absl::MakeSpan(bytes));
  return Send(bytes, payload);
}

absl::StatusOr<FrameSocket::Header> FrameSocket::ReceiveHeader() {
  static_assert(kRefusalHeaderBytes == kValuesHeaderBytes, "read before it is known which one comes");
  char bytes[kValuesHeaderBytes];
  if (absl::Status status = Receive(absl::MakeSpan(bytes)); !status.ok()) return status;
  const absl::string_view start(bytes, sizeof bytes);
  if (IsRefusal(start)) {
    std::string text(RefusalTextBytes(start), '\0');
    if (absl::Status status = Receive(absl::MakeSpan(&text[0], text.size())); !status.ok()) return status;
    return Header{DecodeRefusal(start, text), {}};
  }
  absl::StatusOr<ValuesHeader> header = DecodeNextHeader(start);
  if (!header.ok()) return header.status();
  return Header{absl::OkStatus(), *header};
}

absl::Status FrameSocket::ReceivePayload(absl::Span<char> payload) { return Receive(payload); }

absl::Status FrameSocket::Send(absl::Span<const char> first, absl::Span<const char> second) {
  // The casts are safe: sendmsg does not write to the memory it sends.
  iovec parts[] = {{const_cast<char*>(first.data()), first.size()}, {const_cast<char*>(second.data()), second.size()}};
  size_t at = 0;
  while (at < 2) {
    msghdr message = {};
    message.msg_iov = parts + at;
    message.msg_iovlen = 2 - at;
    const ssize_t sent = sendmsg(descriptor_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Broken("sending");
    size_t left = static_cast<size_t>(sent);
    for (; at < 2 && left >= parts[at].iov_len; ++at) left -= parts[at].iov_len;
    if (at == 2) break;
    parts[at].iov_base = static_cast<char*>(parts[at].iov_base) + left;
    parts[at].iov_len -= left;
  }
  return absl::OkStatus();
}

absl::Status FrameSocket::Receive(absl::Span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t received = recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return Broken("receiving");
    if (received == 0) return absl::UnavailableError("the peer has closed the connection");
    bytes.remove_prefix(static_cast<size_t>(received));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ConnectLocally(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof address.sun_path) return absl::UnavailableError("no local socket's name");
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const socklen_t length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor >= 0 && connect(descriptor, reinterpret_cast<const sockaddr*>(&address), length) == 0)
    return descriptor;
  absl::Status status = Broken("connecting");
  if (descriptor >= 0) close(descriptor);
  return status;
}

absl::StatusOr<int> ConnectTcp(const std::string& host, uint16_t port, absl::Duration timeout,
                               const std::function<bool()>& cancelled) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) return absl::UnavailableError(absl::StrCat(host, ": ", gai_strerror(code)));
  auto freer = absl::MakeCleanup([found] { freeaddrinfo(found); });
  const absl::Time deadline = SteadyTime() + timeout;
  absl::Status status = absl::UnavailableError(absl::StrCat(host, " has no address"));
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    // The socket does not block, so that the deadline and `cancelled` can end the connecting.
    const int descriptor = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) continue;
    auto closer = absl::MakeCleanup([descriptor] { close(descriptor); });
    if (connect(descriptor, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) {
      status = Broken("connecting");
      continue;
    }
    status = AwaitConnection(descriptor, deadline, cancelled);
    if (!status.ok()) continue;
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    std::move(closer).Cancel();
    return descriptor;
  }
  return status;
}

}  // namespace hooke
