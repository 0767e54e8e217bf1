#ifndef HOOKE_SERVER_COORDINATOR_CHOOSE_SERVERS_H_
#define HOOKE_SERVER_COORDINATOR_CHOOSE_SERVERS_H_

// Which servers hold the center of a job whose first group is about to start? A pure function of plain values, as
// placement.h. Used by ClusterState, once per job: the list is the job's for good, since shards lie where it says.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hooke {

struct LiveServer {
  std::string address;
  uint64_t center_bytes = 0;  // What it holds for other jobs, as it last said.
  bool own = false;           // Is the coordinator, too.
};

struct ServerChoice {
  std::vector<std::string> servers;  // The coordinator's own first, the others by address. Empty: the job waits.
  std::string reason;                // Always set.
};

// `wanted` servers, or all where it is 0: those that hold the fewest bytes (ties: the coordinator's own, then by
// address).
ServerChoice ChooseServers(uint32_t wanted, absl::Span<const LiveServer> live);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_CHOOSE_SERVERS_H_
