#ifndef HOOKE_WIRE_HOST_PORT_H_
#define HOOKE_WIRE_HOST_PORT_H_

// HOST:PORT, as all flags and messages of Hooke spell it, with one check for all programs. Port 0 lets the system
// choose a port: a listener may use 0, a dialer may not. Pure.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

struct HostPort {
  std::string host;  // Without the brackets of an IPv6 address.
  uint16_t port = 0;

  std::string ToString() const;  // With the brackets of an IPv6 address.
  bool IsAnyHost() const { return host == "0.0.0.0" || host == "::"; }
  // True if only this machine can reach the host: 127.0.0.0/8, ::1 or localhost.
  bool IsLoopback() const;
};

// Parses an address: "host:1", "127.0.0.1:0", "[::1]:7". The message of INVALID_ARGUMENT gives the allowed form.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// Returns OK if `text` can be dialed. INVALID_ARGUMENT if it is no HOST:PORT or its port is 0. The message gives the
// allowed form.
absl::Status CheckDialAddress(absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_WIRE_HOST_PORT_H_
