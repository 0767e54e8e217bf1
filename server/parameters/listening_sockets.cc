#include "server/parameters/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "wire/random_hex.h"

namespace hooke {
namespace {

constexpr int kBacklog = 256;

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
  const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_storage own = {};
  socklen_t length = sizeof own;
  if (listener >= 0 && bind(listener, found->ai_addr, found->ai_addrlen) == 0 && listen(listener, kBacklog) == 0 &&
      getsockname(listener, reinterpret_cast<sockaddr*>(&own), &length) == 0) {
    // The port is at the same place in IPv4 and IPv6 addresses.
    *port = ntohs(reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
    return listener;
  }
  absl::Status status = Failure(host);
  if (listener >= 0) close(listener);
  return status;
}

// Listens in Linux's abstract namespace. The socket needs no folder, and it disappears with its process, whatever ends
// the process.
absl::StatusOr<int> ListenLocally(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const socklen_t length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener >= 0 && bind(listener, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
      listen(listener, kBacklog) == 0) {
    return listener;
  }
  absl::Status status = Failure("a Unix socket");
  if (listener >= 0) close(listener);
  return status;
}

}  // namespace

absl::StatusOr<ListeningSockets> ListeningSockets::Open(const std::string& host) {
  ListeningSockets sockets;
  absl::StatusOr<int> tcp = ListenTcp(host, &sockets.port_);
  if (!tcp.ok()) return tcp.status();
  sockets.tcp_ = *tcp;
  // No other host has this name, so whoever can connect to it is on this host.
  sockets.local_name_ = absl::StrCat("hooke-", RandomHex(4));
  absl::StatusOr<int> local = ListenLocally(sockets.local_name_);
  if (!local.ok()) return local.status();
  sockets.local_ = *local;
  return sockets;
}

ListeningSockets::ListeningSockets(ListeningSockets&& other) noexcept
    : tcp_(std::exchange(other.tcp_, -1)),
      local_(std::exchange(other.local_, -1)),
      port_(other.port_),
      local_name_(std::move(other.local_name_)) {}

ListeningSockets::~ListeningSockets() {
  for (const int descriptor : {tcp_, local_}) {
    if (descriptor >= 0) close(descriptor);
  }
}

}  // namespace hooke
