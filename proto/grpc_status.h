#ifndef HOOKE_PROTO_GRPC_STATUS_H_
#define HOOKE_PROTO_GRPC_STATUS_H_

// How a gRPC call ended, as everything of Hooke says it.

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hooke {

// The same code and words; UNKNOWN for a code that is none. Where a message was too large, what gRPC says of it becomes
// its size and the limit, and, unless the sender itself refused it, the flag that raises that.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hooke

#endif  // HOOKE_PROTO_GRPC_STATUS_H_
