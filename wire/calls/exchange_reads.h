#ifndef HOOKE_WIRE_CALLS_EXCHANGE_READS_H_
#define HOOKE_WIRE_CALLS_EXCHANGE_READS_H_

// Reads the last exchanges of a job from the servers that hold its shards, for its trace.

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "wire/calls/exchanges_of_server.h"
#include "wire/cluster_token.h"

namespace hooke {

struct ExchangeReadsOptions {
  std::string job_id;
  std::vector<std::string> servers;                   // Addresses.
  ClusterToken token = {};                            // Of the cluster; may be empty.
  absl::Duration timeout = absl::Milliseconds(2500);  // The time limit for all servers together.
};

// Asks all servers at once, and returns an answer for each, in their order, after `timeout` at the latest.
// DEADLINE_EXCEEDED: the server has not answered. UNAVAILABLE: it cannot be reached. UNIMPLEMENTED: it is of an older
// version. NOT_FOUND: it has no exchanges of the job in memory. Any other code comes from the server, too.
std::vector<ExchangesOfServer> ReadExchanges(const ExchangeReadsOptions& options);

}  // namespace hooke

#endif  // HOOKE_WIRE_CALLS_EXCHANGE_READS_H_
