#ifndef HOOKE_JOB_PROFILE_STEP_SPLIT_H_
#define HOOKE_JOB_PROFILE_STEP_SPLIT_H_

// Splits the time of a job's last steps into computing, waiting for slower ranks, collectives and exchanges. It works
// on the trace, which has the last events of each rank. Pure. Values from ranks are not trusted.
//
// A rank waits from when it enters a collective until the last rank of its group has entered it. Only the part of the
// wait in which the rank has nothing else to do counts, that is, its part in the phase COLLECTIVE. The rest of that
// phase is the collective itself.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// The times of one group: sums over its ranks, in nanoseconds. They cover only the common time, in which the events of
// all its ranks are known.
struct StepSplit {
  uint32_t group = 0;
  uint32_t ranks = 0;
  int64_t window_ns = 0;  // Length of the common time.
  int64_t compute_ns = 0;
  int64_t waiting_ns = 0;
  int64_t collective_ns = 0;
  int64_t exchange_ns = 0;
  uint64_t collectives = 0;  // Collectives that all ranks have entered in the common time.
  uint32_t last_rank = 0;    // The rank that was most often the last to enter a collective.
  uint64_t last_times = 0;   // How often `last_rank` was the last.

  int64_t total_ns() const { return compute_ns + waiting_ns + collective_ns + exchange_ns; }
  double ShareOf(int64_t part_ns) const;  // The share of total_ns() that `part_ns` is; 0 if total_ns() is 0.
  double LastShare() const;               // The share of the collectives that `last_rank` entered last.
};

// One element for each group whose ranks have a time in common, in the order of the groups.
std::vector<StepSplit> SplitSteps(absl::Span<const v1::ReadProfileResponse> ranks);

nlohmann::ordered_json StepSplitToJson(const std::vector<StepSplit>& groups);

// How many cores each server of the job keeps busy. Where servers and ranks share a machine, the ranks lack these
// cores. A server that the coordinator has not heard from is left out.
struct ServerCores {
  std::string address;
  double cores = 0;  // The mean number of busy cores over about the last 10 s.
};
std::vector<ServerCores> CoresOfServers(const v1::JobStatus& job, const v1::ListNodesResponse& nodes);
nlohmann::ordered_json ServerCoresToJson(const std::vector<ServerCores>& servers);

}  // namespace hooke

#endif  // HOOKE_JOB_PROFILE_STEP_SPLIT_H_
