#ifndef HOOKE_SERVER_LISTEN_ADDRESS_H_
#define HOOKE_SERVER_LISTEN_ADDRESS_H_

// HOST:PORT: taking it apart, and why one cannot be listened on. Used by server/daemon.cc.

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

// Called when gRPC could not listen there and does not say why: tries itself. UNAVAILABLE with the reason and what to
// do.
absl::Status WhyNotListening(const HostPort& address);

}  // namespace hooke

#endif  // HOOKE_SERVER_LISTEN_ADDRESS_H_
