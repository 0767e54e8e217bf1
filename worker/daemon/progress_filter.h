#ifndef HOOKE_WORKER_DAEMON_PROGRESS_FILTER_H_
#define HOOKE_WORKER_DAEMON_PROGRESS_FILTER_H_

// Decides which of the ranks' progress reports the coordinator gets. Of rank 0 it shows users everything, of the other
// ranks only the servers that they miss. Each rank reports twice a second. If all reports were passed on, they would
// cost a large cluster's coordinator most of its time. Pure. Not thread-safe.

#include <cstdint>
#include <set>

#include "proto/worker.pb.h"

namespace hooke {

class ProgressFilter {
 public:
  // True for each report of rank 0 and for the first report of every rank. From another rank, reports that name absent
  // servers pass, and the first report after them that names none.
  bool MustPass(uint32_t rank, const v1::RankProgress& progress);

 private:
  std::set<uint32_t> known_;         // Ranks that have reported.
  std::set<uint32_t> miss_servers_;  // Ranks whose last progress named absent servers.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_PROGRESS_FILTER_H_
