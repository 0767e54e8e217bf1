#ifndef HOOKE_WIRE_CALLS_EXCHANGES_OF_SERVER_H_
#define HOOKE_WIRE_CALLS_EXCHANGES_OF_SERVER_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// The answer of a job's server to ReadExchanges, or why there is none.
struct ExchangesOfServer {
  std::string address;
  absl::StatusOr<v1::ReadExchangesResponse> answer;
};

}  // namespace hooke

#endif  // HOOKE_WIRE_CALLS_EXCHANGES_OF_SERVER_H_
