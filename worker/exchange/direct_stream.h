#ifndef HOOKE_WORKER_EXCHANGE_DIRECT_STREAM_H_
#define HOOKE_WORKER_EXCHANGE_DIRECT_STREAM_H_

// An exchange's stream without gRPC (docs/wire.md): over a Unix socket if rank and server share a host, otherwise over
// TCP.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/server_calls.h"

namespace hooke {

// A Locate call, which asks a server where it takes direct connections.
class LocateCall {
 public:
  virtual ~LocateCall() = default;
  // Blocks until the answer comes. Cancel ends Run at once, even if Cancel was called first.
  virtual absl::StatusOr<v1::LocateResponse> Run() = 0;
  virtual void Cancel() = 0;
};

struct DirectStreamOptions {
  std::string address;  // HOST:PORT where the server takes gRPC calls.
  v1::Sender sender;
  bool local = true;   // Whether to try a Unix socket first.
  bool direct = true;  // Whether to try TCP next.
  std::unique_ptr<LocateCall> locate;
  // Opens the stream if no direct connection can be made.
  std::function<std::shared_ptr<ExchangeStream>()> open_by_grpc;
};

// Returns the stream. Never blocks, because the stream connects at the first Write.
std::shared_ptr<ExchangeStream> OpenDirectStream(DirectStreamOptions options);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_DIRECT_STREAM_H_
