#ifndef HOOKE_SERVER_PARAMETERS_CALL_REPLY_H_
#define HOOKE_SERVER_PARAMETERS_CALL_REPLY_H_

// The statuses with which calls of hooke.v1.ParameterServer end.

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Returns the refusal of a call that comes after Stop.
inline grpc::Status Stopping() {
  return {grpc::StatusCode::UNAVAILABLE, "this parameter server is stopping; try again"};
}

// Converts the status to gRPC's. Errors are logged with the caller's address.
inline grpc::Status ReplyTo(const grpc::ServerContextBase& context, spdlog::logger& logger, absl::string_view call,
                            const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  logger.warn("{} from {} refused: {}", std::string(call), context.peer(), status.ToString());
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_CALL_REPLY_H_
