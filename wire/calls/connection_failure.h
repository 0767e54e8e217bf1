#ifndef HOOKE_WIRE_CALLS_CONNECTION_FAILURE_H_
#define HOOKE_WIRE_CALLS_CONNECTION_FAILURE_H_

// Reads gRPC's messages about failed connections. Pure.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// True if the message of an UNAVAILABLE error comes from gRPC, about a connection. False if it is the server's answer.
bool IsConnectionFailure(absl::string_view message);

// Shortens gRPC's message about a failed connection to the reason, such as "Connection refused".
std::string ConnectionTrouble(const std::string& message);

}  // namespace hooke

#endif  // HOOKE_WIRE_CALLS_CONNECTION_FAILURE_H_
