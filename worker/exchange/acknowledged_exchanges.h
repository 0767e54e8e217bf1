#ifndef HOOKE_WORKER_EXCHANGE_ACKNOWLEDGED_EXCHANGES_H_
#define HOOKE_WORKER_EXCHANGE_ACKNOWLEDGED_EXCHANGES_H_

// The exchanges that a server has answered in full, and how far back it goes when it is started again from a snapshot.
// Pure: time comes in.

#include <cstdint>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "algorithms/sharding.h"

namespace hooke {

// How far a part of the center went back.
struct Setback {
  uint64_t exchanges = 0;  // That were answered and are lost.
  bool more = false;       // Than so many: there were too many to remember.
  absl::Duration time;     // From the last exchange that the snapshot has to the last that was answered.
};

class AcknowledgedExchanges {
 public:
  // An exchange was answered at `now`. Sequences grow.
  void Note(uint64_t sequence, absl::Time now);

  // Of the last one; 0: none.
  uint64_t last() const { return answered_.empty() ? 0 : answered_.back().sequence; }

  // The server was started again from a snapshot that has the exchanges up to `snapshot`; `last` was the last one
  // before that start. The lost ones are forgotten.
  Setback GoBack(uint64_t snapshot, uint64_t last);

 private:
  struct Answered {
    uint64_t sequence = 0;
    absl::Time at;
  };
  std::deque<Answered> answered_;  // The last ones, in order.
  bool dropped_ = false;           // There were older ones.
};

// "server 10.0.0.2:7411 came back from its snapshot of 2026-11-23T14:03:05Z: parameters 30,000-61,706 of the center (51
// %) went back by 37 exchanges, 4.1 s".
struct SetbackPlace {
  std::string address;
  absl::Time snapshot;
  Range shard;          // Not empty.
  uint64_t values = 1;  // Of the whole center.
};
std::string SetbackText(const SetbackPlace& place, const Setback& setback);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_ACKNOWLEDGED_EXCHANGES_H_
