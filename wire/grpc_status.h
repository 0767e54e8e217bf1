#ifndef HOOKE_WIRE_GRPC_STATUS_H_
#define HOOKE_WIRE_GRPC_STATUS_H_

// Converts the status of a gRPC call to an absl::Status.

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hooke {

// The key of a status payload: a serialized v1::StatusDetails (coordinator.proto). It travels in the call's trailer
// "grpc-status-details-bin".
constexpr char kStatusDetails[] = "hooke.v1.StatusDetails";

// Returns the same code, words and details; UNKNOWN for a code that absl does not have. If a message was too large, the
// text gives its size and the limit. It also names the flag that raises the limit, unless the sender itself refused.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hooke

#endif  // HOOKE_WIRE_GRPC_STATUS_H_
