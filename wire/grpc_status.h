#ifndef HOOKE_WIRE_GRPC_STATUS_H_
#define HOOKE_WIRE_GRPC_STATUS_H_

// Converts the status of a gRPC call to an absl::Status.

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hooke {

// The key of a status payload, which holds a serialized v1::StatusDetails (coordinator.proto). gRPC sends the payload
// in the call's trailer "grpc-status-details-bin".
constexpr char kStatusDetails[] = "hooke.v1.StatusDetails";

// Returns a status with the same code, message and details; the code is UNKNOWN if absl does not have it. If a message
// was too large, the text gives its size and the limit. It also names the flag that raises the limit, unless the sender
// itself refused the message.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hooke

#endif  // HOOKE_WIRE_GRPC_STATUS_H_
