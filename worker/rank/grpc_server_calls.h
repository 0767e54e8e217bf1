#ifndef HOOKE_WORKER_RANK_GRPC_SERVER_CALLS_H_
#define HOOKE_WORKER_RANK_GRPC_SERVER_CALLS_H_

// Calls to a parameter server over gRPC.

#include <memory>
#include <string>

#include "worker/rank/server_calls.h"

namespace hooke {

// One channel of its own to host:port. Does not connect yet.
std::unique_ptr<ServerCalls> DialServer(const std::string& address);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_GRPC_SERVER_CALLS_H_
