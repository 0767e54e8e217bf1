#include "wire/http/listening_port.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

constexpr int kBacklog = 64;

uint16_t PortOf(int descriptor) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace

absl::StatusOr<ListeningPort> ListeningPort::Open(const HostPort& address, absl::string_view flag) {
  const auto fails = [&](absl::string_view why) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.ToString(), ": ", why, ": choose another address with ", flag));
  };
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0) return fails(gai_strerror(code));
  const auto freer = absl::MakeCleanup([found] { freeaddrinfo(found); });
  ListeningPort listening(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), 0);
  const int descriptor = listening.descriptor_;
  if (descriptor < 0) return fails(std::strerror(errno));
  // A restarted daemon need not wait for connections of its predecessor in TIME_WAIT.
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(descriptor, found->ai_addr, found->ai_addrlen) != 0 || listen(descriptor, kBacklog) != 0) {
    return fails(errno == EADDRINUSE ? "address already in use by another program" : std::strerror(errno));
  }
  listening.port_ = PortOf(descriptor);
  return listening;
}

ListeningPort::ListeningPort(ListeningPort&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), port_(other.port_) {}

ListeningPort::~ListeningPort() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace hooke
