#ifndef HOOKE_WORKER_EXCHANGE_ACKNOWLEDGED_EXCHANGES_H_
#define HOOKE_WORKER_EXCHANGE_ACKNOWLEDGED_EXCHANGES_H_

// Remembers which exchanges a server has answered in full. After a restart of the server from a snapshot it tells how
// far the server went back. Pure: the caller passes the time.

#include <cstdint>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "algorithms/sharding.h"

namespace hooke {

// How far a part of the center went back.
struct Setback {
  uint64_t exchanges = 0;  // Exchanges that were answered and are lost.
  bool more = false;       // More exchanges are lost than were remembered.
  absl::Duration time;     // Time between two answers: to the snapshot's last exchange, and to the last lost exchange.
};

class AcknowledgedExchanges {
 public:
  // Records an exchange that was answered at `now`. Sequences grow.
  void Note(uint64_t sequence, absl::Time now);

  // Sequence of the last exchange that is remembered; 0 if there is none.
  uint64_t last() const { return answered_.empty() ? 0 : answered_.back().sequence; }

  // The server restarted from a snapshot that has the exchanges up to `snapshot`; `last` is the last exchange before
  // the restart. Returns what was lost, and forgets the lost exchanges.
  Setback GoBack(uint64_t snapshot, uint64_t last);

 private:
  struct Answered {
    uint64_t sequence = 0;
    absl::Time at;
  };
  std::deque<Answered> answered_;  // The most recent exchanges, oldest first.
  bool dropped_ = false;           // Whether exchanges older than those of answered_ were dropped.
};

// A server that restarted from a snapshot, and its part of the center.
struct SetbackPlace {
  std::string address;
  absl::Time snapshot;
  Range shard;          // Not empty.
  uint64_t values = 1;  // Length of the whole center.
};
// For example "server 10.0.0.2:7411 came back from its snapshot of 2026-11-23T14:03:05Z: parameters 30,000-61,706 of
// the center (51 %) went back by 37 exchanges, 4.1 s".
std::string SetbackText(const SetbackPlace& place, const Setback& setback);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_ACKNOWLEDGED_EXCHANGES_H_
