#ifndef HOOKE_WORKER_DAEMON_PROGRESS_FILTER_H_
#define HOOKE_WORKER_DAEMON_PROGRESS_FILTER_H_

// Which of the ranks' progress reports does the coordinator need? It shows users those of rank 0, and of the others
// only the servers that they miss. Each rank reports twice a second, so passing all on would cost a large cluster's
// coordinator most of its time. Pure. Not thread-safe.

#include <cstdint>
#include <set>

#include "proto/worker.pb.h"

namespace hooke {

class ProgressFilter {
 public:
  // True for each report of rank 0, and for the first of every rank. Of the others, those that name absent servers
  // pass, and the first one after them that names none.
  bool MustPass(uint32_t rank, const v1::RankProgress& progress);

 private:
  std::set<uint32_t> known_;         // Ranks that have reported.
  std::set<uint32_t> miss_servers_;  // Ranks whose last progress named absent servers.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_PROGRESS_FILTER_H_
