#ifndef HOOKE_SERVER_HEARTBEAT_EXCHANGE_WINDOW_H_
#define HOOKE_SERVER_HEARTBEAT_EXCHANGE_WINDOW_H_

// Works out how much a server has answered to groups over the last seconds, and how fast, from the counts of its
// shards. Pure: the caller passes the time.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/coordinator.pb.h"
#include "server/parameters/parameter_figures.h"

namespace hooke {

// Returns the seconds that the fraction `q` (0 to 1) of the answers in these buckets took at most. The buckets are
// those of ExchangeCounts::answers. Inside a bucket the answers count as evenly spread. The last bucket has no upper
// bound, so its answers count as its lower one. Returns 0 if there are no answers.
double AnswerQuantile(absl::Span<const uint64_t> answers, double q);

// Belongs to one thread.
class ExchangeWindow {
 public:
  explicit ExchangeWindow(absl::Duration window) : window_(window) {}

  // Takes the present figures of all shards at `now` on a steady clock. Returns what was answered since the call that
  // came last before `now - window`. If there is none, since the first call. The first call returns zeros. What a shard
  // answered between the last call and its end is not counted.
  v1::ExchangeFigures Add(absl::Time now, const ParameterFigures& figures);

 private:
  // Counts of the answers from the first call up to `at`.
  struct Totals {
    absl::Time at;
    std::vector<uint64_t> answers;
    uint64_t received_bytes = 0;
    uint64_t sent_bytes = 0;
  };

  const absl::Duration window_;
  std::map<std::string, ExchangeCounts> last_;  // By job.
  std::deque<Totals> seen_;
};

// Returns the age of the oldest of the shards' states on disk, in seconds. A shard without a snapshot does not count.
double OldestSnapshotSeconds(const ParameterFigures& figures);

}  // namespace hooke

#endif  // HOOKE_SERVER_HEARTBEAT_EXCHANGE_WINDOW_H_
