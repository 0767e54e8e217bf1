#ifndef HOOKE_WORKER_DAEMON_PROGRESS_FILTER_H_
#define HOOKE_WORKER_DAEMON_PROGRESS_FILTER_H_

// Decides which of the ranks' progress reports the coordinator gets. The coordinator shows users the whole report of
// rank 0, but of the other ranks only the servers that they miss, and how far a rank came that failed. Each rank
// reports twice a second. If all reports were passed on, they would cost a large cluster's coordinator most of its
// time. Pure. Not thread-safe.

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "proto/worker.pb.h"

namespace hooke {

class ProgressFilter {
 public:
  // Returns whether the coordinator gets this report. That is true for each report of rank 0 and for the first report
  // of every rank. From the other ranks, it is also true for reports that name absent servers, and for the first report
  // after these that names none.
  bool MustPass(uint32_t rank, const v1::RankProgress& progress);

  // Returns the rank's last report if the coordinator did not get it. Call it when the rank fails: rank 0 may have died
  // without a word, and then this one says how far the group came.
  std::optional<v1::RankProgress> TakeDropped(uint32_t rank);

 private:
  std::set<uint32_t> known_;                      // Ranks that have reported.
  std::map<uint32_t, v1::RankProgress> dropped_;  // Last reports that the coordinator did not get, by rank.
  std::set<uint32_t> miss_servers_;               // Ranks whose last progress named absent servers.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_PROGRESS_FILTER_H_
