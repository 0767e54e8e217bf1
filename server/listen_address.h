#ifndef HOOKE_SERVER_LISTEN_ADDRESS_H_
#define HOOKE_SERVER_LISTEN_ADDRESS_H_

// Finds out why listening at an address fails.

#include "absl/status/status.h"
#include "wire/host_port.h"

namespace hooke {

// Call it after gRPC failed to listen, since gRPC does not say why. Tries to listen itself. Returns UNAVAILABLE with
// the reason.
absl::Status WhyNotListening(const HostPort& address);

}  // namespace hooke

#endif  // HOOKE_SERVER_LISTEN_ADDRESS_H_
