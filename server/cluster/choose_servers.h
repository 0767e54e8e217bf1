#ifndef HOOKE_SERVER_CLUSTER_CHOOSE_SERVERS_H_
#define HOOKE_SERVER_CLUSTER_CHOOSE_SERVERS_H_

// Which servers hold the center of a job whose first group is about to start? A pure function of plain values. The
// choice is made once for a job, because the center's shards then lie on these servers.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/records/records.h"

namespace hooke {

struct LiveServer {
  std::string address;
  uint64_t center_bytes = 0;  // Size of all centers that it holds, by its last heartbeat.
  bool own = false;           // It runs in the coordinator's process.
  // Says whether the coordinator has reached the server at its address. Only servers that it has reached get shards.
  enum class Reach { kReached, kBeingDialed, kFailed } reach = Reach::kReached;
  std::string problem;  // If `reach` is kFailed: the problem, as words that follow "one ".
  std::string id;
};

struct ServerChoice {
  std::vector<JobServer> servers;  // The coordinator's own server first, then by address. Empty: the job waits.
  std::string reason;              // Always set.
};

// Chooses the `wanted` servers that hold the fewest bytes, or all servers if `wanted` is 0. Ties go to the
// coordinator's own server, then by address. Servers that the coordinator has not reached are left out, and the reason
// says why. A job that takes all servers waits while one is kBeingDialed.
ServerChoice ChooseServers(uint32_t wanted, absl::Span<const LiveServer> live);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_CHOOSE_SERVERS_H_
