#include "server/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hooke {

std::string HostPort::ToString() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return absl::StrCat(is_v6 ? "[" : "", host, is_v6 ? "]" : "", ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  const absl::Status wrong =
      absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is no address, allowed is HOST:PORT or [IPv6]:PORT"));
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return wrong;
  absl::string_view host = text.substr(0, colon);
  const absl::string_view digits = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.empty() || host.find_first_of(":[]") != host.npos) {
    return wrong;
  }
  uint32_t port = 0;
  if (digits.find_first_not_of("0123456789") != digits.npos || !absl::SimpleAtoi(digits, &port) || port > 65535)
    return wrong;
  return HostPort{std::string(host), static_cast<uint16_t>(port)};
}

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
