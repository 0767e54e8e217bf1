#ifndef HOOKE_CLIENT_DOCTOR_CLUSTER_CHECKS_H_
#define HOOKE_CLIENT_DOCTOR_CLUSTER_CHECKS_H_

// Checks of a cluster: its coordinator, the token, its servers and workers, its jobs. Pure.

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/doctor/finding.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// The values that the checks of a cluster read: the answers of its coordinator, and how they were got.
struct ClusterValues {
  std::string own_version;
  std::string address;      // The coordinator's address.
  std::string source;       // What gave the address: "--coordinator", "HOOKE_COORDINATOR".
  bool by_default = false;  // Nothing gave an address, so it is the default.
  std::string token_file;   // The path of the token's file; empty: none was given.
  absl::Status token;       // The result of reading `token_file`.
  absl::Status connected;
  absl::Status answered;  // The result of the calls; OK if there were none, because the connection failed.
  absl::Duration round_trip = absl::InfiniteDuration();  // The shortest of a few calls.
  v1::ListNodesResponse nodes;
  v1::ListJobsResponse jobs;
  // This machine's clock before the last call that listed nodes, and after the call that listed jobs.
  absl::Time asked;
  absl::Time told;
};

// Returns the findings about the cluster. If no cluster was named and none runs here, that is no fault. If there is no
// answer, nothing is said about nodes and jobs.
Findings CheckCluster(const ClusterValues& cluster);

// The difference of a peer's clock from ours: positive if the peer's is ahead. The true value lies between both.
struct ClockDifference {
  absl::Duration least;
  absl::Duration most;
};
// Returns how far the coordinator's clock is from ours, by the newest time that the coordinator has told. That is the
// time of a job's status, or of a node's last heartbeat, which comes every second. nullopt: it told no time.
std::optional<ClockDifference> CoordinatorClock(const ClusterValues& cluster);

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_CLUSTER_CHECKS_H_
