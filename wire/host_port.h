#ifndef HOOKE_WIRE_HOST_PORT_H_
#define HOOKE_WIRE_HOST_PORT_H_

// HOST:PORT, as every flag and message of Hooke writes it. One check for all programs: who listens may leave the port
// to the system (0), who dials may not. Pure.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

struct HostPort {
  std::string host;  // Without the brackets of an IPv6 address.
  uint16_t port = 0;

  std::string ToString() const;  // With them.
  bool IsAnyHost() const { return host == "0.0.0.0" || host == "::"; }
};

// "host:1", "127.0.0.1:0", "[::1]:7". INVALID_ARGUMENT with what is allowed.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// INVALID_ARGUMENT, with what is allowed, for what nobody can dial: no HOST:PORT, or port 0.
absl::Status CheckDialAddress(absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_WIRE_HOST_PORT_H_
