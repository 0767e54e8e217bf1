#ifndef HOOKE_WORKER_EXCHANGE_GRPC_SERVER_CALLS_H_
#define HOOKE_WORKER_EXCHANGE_GRPC_SERVER_CALLS_H_

// Calls to a parameter server over gRPC. Exchanges use direct connections without gRPC if these can be made.

#include <memory>
#include <string>

#include "proto/worker.pb.h"
#include "wire/cluster_token.h"
#include "worker/exchange/server_calls.h"

namespace hooke {

struct DialOptions {
  // The kinds of stream that an exchange tries, in this order, before it uses gRPC.
  bool local = true;   // A Unix socket.
  bool direct = true;  // TCP without gRPC.
  // The credential that each call carries (wire/cluster_token.h). Servers of a cluster with a token refuse calls
  // without it.
  CallCredential credential = {};
};

// The options for the ranks of a group.
DialOptions DialOptionsOf(const v1::GroupStart& start);

// Returns calls to the server at `address` (host:port). They have a gRPC channel of their own. Does not connect yet.
std::unique_ptr<ServerCalls> DialServer(const std::string& address, const DialOptions& options = {});

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_GRPC_SERVER_CALLS_H_
