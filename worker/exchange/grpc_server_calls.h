#ifndef HOOKE_WORKER_EXCHANGE_GRPC_SERVER_CALLS_H_
#define HOOKE_WORKER_EXCHANGE_GRPC_SERVER_CALLS_H_

// Calls to a parameter server over gRPC; its exchanges on connections of their own, where those can be made.

#include <memory>
#include <string>

#include "worker/exchange/server_calls.h"

namespace hooke {

struct DialOptions {
  // What an exchange's stream may be; the first of these that can be made.
  bool local = true;   // A Unix socket.
  bool direct = true;  // TCP without gRPC.
};

// One channel of its own to host:port. Does not connect yet.
std::unique_ptr<ServerCalls> DialServer(const std::string& address, const DialOptions& options = {});

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_GRPC_SERVER_CALLS_H_
