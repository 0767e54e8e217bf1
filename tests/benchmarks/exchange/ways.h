#ifndef HOOKE_TESTS_BENCHMARKS_EXCHANGE_WAYS_H_
#define HOOKE_TESTS_BENCHMARKS_EXCHANGE_WAYS_H_

// What a rank of `tests/benchmarks/run exchange` can be told to run: an exchange of its slice with all servers, by
// Hooke and by its rivals. Each checks its answers when it is prepared. All keep their connections from call to call.

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/benchmarks/collectives/rival.h"

namespace hooke {

struct WayOptions {
  uint32_t rank = 0;
  uint32_t ranks = 1;
  std::vector<std::string> servers;  // host:port of each.
  absl::Duration timeout = absl::Seconds(60);
};

// An elastic exchange with hooke-servers. The answers are checked bit by bit against ElasticExchange.
// Over loopback TCP; where `way` says so, over a Unix socket ("hooke-unix"), as ranks of a server's host do, or by gRPC
// ("hooke-grpc"), as where only gRPC's port can be reached.
Prepare HookeWay(const WayOptions& options, const std::string& way);
// The same bytes to the servers of echo_server.h and back over plain TCP, nothing parsed, one copy at the server.
Prepare SocketsWay(const WayOptions& options);
// One unary gRPC call to each server, with a field of bytes each way.
Prepare UnaryWay(const WayOptions& options);

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_EXCHANGE_WAYS_H_
