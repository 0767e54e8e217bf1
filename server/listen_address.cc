#include "server/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace hooke {

absl::Status WhyNotListening(const HostPort& address) {
  const std::string failure = absl::StrCat("cannot listen on ", address.ToString(), ": ");
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0)
    return absl::UnavailableError(absl::StrCat(failure, gai_strerror(code), ": choose another with --listen"));
  auto freer = absl::MakeCleanup([found] { freeaddrinfo(found); });
  const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return absl::UnavailableError(absl::StrCat(failure, std::strerror(errno)));
  auto closer = absl::MakeCleanup([listener] { close(listener); });
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool bound = bind(listener, found->ai_addr, found->ai_addrlen) == 0 && listen(listener, 1) == 0;
  if (!bound && errno != EADDRINUSE) {
    return absl::UnavailableError(absl::StrCat(failure, std::strerror(errno), ": choose another with --listen"));
  }
  if (bound) return absl::UnavailableError(absl::StrCat(failure, "it was taken a moment ago: try again"));
  return absl::UnavailableError(
      absl::StrCat(failure, "address already in use: another server runs there, or choose another with --listen"));
}

}  // namespace hooke
