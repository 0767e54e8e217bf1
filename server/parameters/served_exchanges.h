#ifndef HOOKE_SERVER_PARAMETERS_SERVED_EXCHANGES_H_
#define HOOKE_SERVER_PARAMETERS_SERVED_EXCHANGES_H_

// The last exchanges that one shard has served, for a job's trace: a ring with a row for each exchange of a rank.
// Nothing in the server depends on it. Recording a message takes some 0.2 us, against the tens of microseconds
// that a message of values takes.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace hooke {

// Names an exchange of a rank.
struct ServedId {
  uint32_t group = 0;
  uint32_t rank = 0;
  uint32_t incarnation = 0;
  uint64_t sequence = 0;

  friend bool operator==(const ServedId& a, const ServedId& b) {
    return a.group == b.group && a.rank == b.rank && a.incarnation == b.incarnation && a.sequence == b.sequence;
  }
};

// A message of an exchange that was answered. Times are in nanoseconds of one clock.
struct ServedMessage {
  ServedId of;
  int64_t arrived_ns = 0;
  int64_t answered_ns = 0;
  int64_t waited_ns = 0;  // Between these two: waits for other groups, and for turns at the shard.
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;
};

// All messages of an exchange together.
struct ServedRow {
  ServedId of;
  int64_t begin_ns = 0;  // The first message arrived.
  int64_t end_ns = 0;    // The last message was answered; >= begin_ns.
  int64_t work_ns = 0;   // From arrival to answer, without waits; >= 0.
  int64_t wait_ns = 0;   // >= 0.
  uint32_t messages = 0;
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;
};

// Thread-safe. Its memory grows with the number of exchanges, up to the size of the ring: 320 KiB for 4096 rows.
class ServedExchanges {
 public:
  static constexpr size_t kRowsMax = 4096;

  explicit ServedExchanges(size_t rows_max = kRowsMax) : rows_max_(rows_max) {}

  // Adds the message to the row of its exchange. The messages of a rank's exchange follow one another: one of an
  // earlier exchange of the same rank begins a new row. The oldest row makes room.
  void Add(const ServedMessage& message) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the rows, in order of their end.
  std::vector<ServedRow> Read() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ServedRow& RowOf(const ServedMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t rows_max_;
  mutable absl::Mutex mutex_;
  // Row number n, from 0, is at n % rows_max_.
  std::vector<ServedRow> rows_ ABSL_GUARDED_BY(mutex_);
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // Rows that have begun.
  // The number of each rank's last row, keyed by group and rank. The ring may have lost that row.
  absl::flat_hash_map<uint64_t, uint64_t> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SERVED_EXCHANGES_H_
