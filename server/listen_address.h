#ifndef HOOKE_SERVER_LISTEN_ADDRESS_H_
#define HOOKE_SERVER_LISTEN_ADDRESS_H_

// Why one cannot listen at an address. Used by server/daemon.cc.

#include "absl/status/status.h"
#include "wire/host_port.h"

namespace hooke {

// Called when gRPC could not listen there and does not say why: tries itself. UNAVAILABLE with the reason and what to
// do.
absl::Status WhyNotListening(const HostPort& address);

}  // namespace hooke

#endif  // HOOKE_SERVER_LISTEN_ADDRESS_H_
