#include "tests/benchmarks/exchange/tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"

namespace hooke {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void SetNoDelay(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Tcp::~Tcp() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<Tcp> Tcp::Connect(const std::string& address) {
  uint32_t port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port))
    return absl::InvalidArgumentError(address + " is no address");
  Tcp tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in peer = Loopback(static_cast<uint16_t>(port));
  if (connect(tcp.descriptor_, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0)
    return absl::ErrnoToStatus(errno, "connecting to " + address);
  SetNoDelay(tcp.descriptor_);
  return tcp;
}

absl::StatusOr<Tcp> Tcp::Listen(uint16_t* port) {
  Tcp tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in own = Loopback(0);
  socklen_t length = sizeof own;
  if (bind(tcp.descriptor_, reinterpret_cast<const sockaddr*>(&own), length) != 0 || listen(tcp.descriptor_, 64) != 0 ||
      getsockname(tcp.descriptor_, reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return absl::ErrnoToStatus(errno, "listening");
  }
  *port = ntohs(own.sin_port);
  return tcp;
}

absl::StatusOr<Tcp> Tcp::Accept() const {
  const int descriptor = accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, "accepting");
  SetNoDelay(descriptor);
  return Tcp(descriptor);
}

absl::Status Tcp::Send(const char* bytes, size_t count) const {
  while (count > 0) {
    const ssize_t sent = send(descriptor_, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return absl::ErrnoToStatus(errno, "sending");
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Tcp::ReceiveSome(char* bytes, size_t most) const {
  while (true) {
    const ssize_t received = recv(descriptor_, bytes, most, 0);
    if (received >= 0) return static_cast<size_t>(received);
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "receiving");
  }
}

absl::Status Tcp::Receive(char* bytes, size_t count) const {
  while (count > 0) {
    const absl::StatusOr<size_t> received = ReceiveSome(bytes, count);
    if (!received.ok()) return received.status();
    if (*received == 0) return absl::UnavailableError("the peer has closed the connection");
    bytes += *received;
    count -= *received;
  }
  return absl::OkStatus();
}

}  // namespace hooke
