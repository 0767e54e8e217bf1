#ifndef HOOKE_SERVER_SERVICE_TO_GRPC_H_
#define HOOKE_SERVER_SERVICE_TO_GRPC_H_

// Converts the Coordinator's statuses to those that gRPC clients get.

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hooke {

// Returns a gRPC status with the same code and with the payload kStatusDetails (wire/grpc_status.h). A long message is
// cut, because it travels in the HTTP/2 trailers, whose size is bounded.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace hooke

#endif  // HOOKE_SERVER_SERVICE_TO_GRPC_H_
