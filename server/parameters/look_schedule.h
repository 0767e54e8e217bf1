#ifndef HOOKE_SERVER_PARAMETERS_LOOK_SCHEDULE_H_
#define HOOKE_SERVER_PARAMETERS_LOOK_SCHEDULE_H_

// Knows when a shard must look at its blocks again, because the deadline of a waiting turn may have passed. A turn is
// one exchange of a block (turn.h).
//
// It keeps the earliest time of all blocks, and not the time of each. A look at all blocks sets it anew: the look asks
// for another one for each block at which a turn still waits.

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hooke {

// Thread-safe.
class LookSchedule {
 public:
  // Returns when to look again, or an earlier time; InfiniteFuture if no turn waits.
  absl::Time next() const;
  // Asks for a look at `when` or before.
  void LookBy(absl::Time when);

  // Begins a look at all blocks. `next` keeps its time until the look has ended, and so never misses a turn. Returns
  // the look's number.
  uint64_t Begin();
  // Ends the look. If several threads look at the same time, the last one to begin sets the time of the next look: it
  // has seen all blocks after the others have begun.
  void End(uint64_t look);

 private:
  mutable absl::Mutex mutex_;
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // The earliest time that LookBy was called with since the last look began.
  absl::Time asked_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  uint64_t looks_ ABSL_GUARDED_BY(mutex_) = 0;  // Looks that have begun.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_LOOK_SCHEDULE_H_
