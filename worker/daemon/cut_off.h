#ifndef HOOKE_WORKER_DAEMON_CUT_OFF_H_
#define HOOKE_WORKER_DAEMON_CUT_OFF_H_

// Decides whether a group must end because it is cut off, so that it has ended before it may start elsewhere.
//
// The coordinator gives a worker up that it has not heard for the length of a lease, and starts its groups elsewhere.
// Servers then refuse the earlier start, so a group that reaches a server goes on until it is told. A group that
// reaches none of its servers would not be told. It ends shortly before its worker's lease does, by this machine's
// monotonic clock. Pure: no threads, sockets or clocks. Not thread-safe.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/worker.pb.h"

namespace hooke {

struct CoordinatorContact {
  // On SteadyTime's clock. The coordinator heard this worker then or later, or was not running then.
  absl::Time heard;
  // How long the coordinator waits for the worker (Welcome.lease_ms). 0: not known.
  absl::Duration lease = absl::ZeroDuration();
};

// The servers that the ranks here miss, by their reports.
class MissedServers {
 public:
  // `servers` are all servers of the job, as host:port.
  explicit MissedServers(std::vector<std::string> servers) : servers_(std::move(servers)) {}

  void Take(uint32_t rank, const v1::RankProgress& progress);
  // Returns whether each server of the job is missed by a rank. False for a job without servers.
  bool All() const;

 private:
  const std::vector<std::string> servers_;
  std::map<uint32_t, std::set<std::string>> by_rank_;  // Ranks that miss some.
};

// Returns OK, or why the group must end now. `misses_all` is MissedServers::All().
absl::Status WhyCutOff(const CoordinatorContact& contact, bool misses_all, absl::Time now);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_CUT_OFF_H_
