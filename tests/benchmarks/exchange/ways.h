#ifndef HOOKE_TESTS_BENCHMARKS_EXCHANGE_WAYS_H_
#define HOOKE_TESTS_BENCHMARKS_EXCHANGE_WAYS_H_

// The ways in which a rank of `tests/benchmarks/run exchange` can exchange its slice with all servers: Hooke's and its
// rivals'. Each way checks its answers when it is prepared, and keeps its connections from call to call.

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/benchmarks/collectives/rival.h"

namespace hooke {

struct WayOptions {
  uint32_t rank = 0;
  uint32_t ranks = 1;
  std::vector<std::string> servers;  // host:port of each server.
  absl::Duration timeout = absl::Seconds(60);
};

// An elastic exchange with hooke-servers; the answers are checked bitwise against ElasticExchange. `way` "hooke" uses
// loopback TCP without gRPC. "hooke-unix" uses a Unix socket, as ranks on a server's host do. "hooke-grpc" uses gRPC,
// as ranks do that can reach only a server's gRPC port.
Prepare HookeWay(const WayOptions& options, const std::string& way);
// Sends the same bytes to rival_server and back over plain TCP. No message is parsed; the server copies each byte once.
Prepare SocketsWay(const WayOptions& options);
// One unary gRPC call to each server, with a bytes field each way.
Prepare UnaryWay(const WayOptions& options);

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_EXCHANGE_WAYS_H_
