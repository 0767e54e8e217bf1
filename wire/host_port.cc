#include "wire/host_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

bool IsName(absl::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

// True for an IPv6 address, such as "::1" or "fe80::1%eth0".
bool IsIpv6(absl::string_view host) {
  const size_t zone = std::min(host.find('%'), host.size());
  const bool zone_is_good = zone == host.size() || IsName(host.substr(zone + 1));
  host = host.substr(0, zone);
  return zone_is_good && absl::StrContains(host, ":") &&
         std::all_of(host.begin(), host.end(), [](char c) { return absl::ascii_isxdigit(c) || c == ':' || c == '.'; });
}

}  // namespace

std::string HostPort::ToString() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return absl::StrCat(is_v6 ? "[" : "", host, is_v6 ? "]" : "", ":", port);
}

bool HostPort::IsLoopback() const {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::Utf8SafeCEscape(text.substr(0, 300)), "\" is no address, allowed is HOST:PORT or [IPv6]:PORT"));
  const size_t colon = text.rfind(':');
  if (colon == text.npos || text.size() > 300) return wrong;
  absl::string_view host = text.substr(0, colon);
  const absl::string_view digits = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!IsIpv6(host)) return wrong;
  } else if (!IsName(host)) {
    return wrong;
  }
  uint32_t port = 0;
  if (digits.find_first_not_of("0123456789") != digits.npos || !absl::SimpleAtoi(digits, &port) || port > 65535)
    return wrong;
  return HostPort{std::string(host), static_cast<uint16_t>(port)};
}

absl::Status CheckDialAddress(absl::string_view text) {
  const absl::StatusOr<HostPort> address = ParseHostPort(text);
  if (!address.ok()) return address.status();
  if (address->port != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" has port 0, at which nobody can be reached, allowed is 1 to 65535"));
}

}  // namespace hooke
