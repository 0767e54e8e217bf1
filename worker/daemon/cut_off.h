#ifndef HOOKE_WORKER_DAEMON_CUT_OFF_H_
#define HOOKE_WORKER_DAEMON_CUT_OFF_H_

// Decides whether a group must end because it is cut off, so that it has ended before it may start elsewhere.
//
// The coordinator gives a worker up that it has not heard for the length of a lease, and starts its groups elsewhere.
// Servers then refuse the earlier start, so a group that reaches a server goes on until it is told. A group that
// reaches none of its servers would not be told. It ends shortly before its worker's lease does, by this machine's
// monotonic clock. Of a group on several workers, each worker decides so for its part, and a part's end is that of the
// group. Pure: no threads, sockets or clocks. Not thread-safe.

#include <cstdint>
#include <map>

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

// Which of the ranks here miss their servers, by their reports. Each rank exchanges with some of the job's servers, or
// with none. If the group runs on several workers, the ranks here may not use all servers even together.
class MissedServers {
 public:
  void Take(uint32_t rank, const v1::RankProgress& progress);
  // Returns whether no rank here reaches a server any more. False if none of them exchanges with a server.
  bool All() const;

 private:
  // For each rank that exchanges with servers, whether it misses all of them.
  std::map<uint32_t, bool> misses_all_;
};

// Returns OK, or why the group must end now. `misses_all` is MissedServers::All().
absl::Status WhyCutOff(const CoordinatorContact& contact, bool misses_all, absl::Time now);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_CUT_OFF_H_
