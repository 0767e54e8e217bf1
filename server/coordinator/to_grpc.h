#ifndef HOOKE_SERVER_COORDINATOR_TO_GRPC_H_
#define HOOKE_SERVER_COORDINATOR_TO_GRPC_H_

// The status of a call of the Coordinator, as its client gets it.

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hooke {

// The same code, and the payload kStatusDetails (wire/grpc_status.h). The message is cut because it travels in the
// HTTP/2 trailers, whose size is bounded.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_TO_GRPC_H_
