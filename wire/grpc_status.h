#ifndef HOOKE_WIRE_GRPC_STATUS_H_
#define HOOKE_WIRE_GRPC_STATUS_H_

// How a gRPC call ended, as everything of Hooke says it.

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hooke {

// The payload of an absl::Status that travels in a call's trailer "grpc-status-details-bin": a v1::StatusDetails
// (coordinator.proto), serialized.
constexpr char kStatusDetails[] = "hooke.v1.StatusDetails";

// The same code, words and details; UNKNOWN for a code that is none. Where a message was too large, what gRPC says of
// it becomes its size and the limit, and, unless the sender itself refused it, the flag that raises that.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hooke

#endif  // HOOKE_WIRE_GRPC_STATUS_H_
