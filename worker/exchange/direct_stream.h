#ifndef HOOKE_WORKER_EXCHANGE_DIRECT_STREAM_H_
#define HOOKE_WORKER_EXCHANGE_DIRECT_STREAM_H_

// An exchange's stream without gRPC: docs/wire.md over a Unix socket where rank and server share a host, else over TCP.
// Used by grpc_server_calls.cc.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/server_calls.h"

namespace hooke {

// One question to a server: where does it take direct connections?
class LocateCall {
 public:
  virtual ~LocateCall() = default;
  // Blocks. After Cancel, which may come first, it ends at once.
  virtual absl::StatusOr<v1::LocateResponse> Run() = 0;
  virtual void Cancel() = 0;
};

struct DirectStreamOptions {
  std::string address;  // HOST:PORT by which the server is dialed.
  v1::Sender sender;
  bool local = true;   // Over a Unix socket where it can be;
  bool direct = true;  // else over TCP.
  std::unique_ptr<LocateCall> locate;
  // Where no direct connection can be made.
  std::function<std::shared_ptr<ExchangeStream>()> open_by_grpc;
};

// Never blocks: it connects at the first Write.
std::shared_ptr<ExchangeStream> OpenDirectStream(DirectStreamOptions options);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_DIRECT_STREAM_H_
