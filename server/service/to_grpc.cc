#include "server/service/to_grpc.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/types/optional.h"
#include "server/cluster/shortened.h"
#include "wire/grpc_status.h"

namespace hooke {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // Abseil and gRPC number the canonical codes alike.
  const absl::optional<absl::Cord> details = status.GetPayload(kStatusDetails);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), Shortened(status.message()),
                      details.has_value() ? std::string(*details) : "");
}

}  // namespace hooke
