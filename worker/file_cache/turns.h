#ifndef HOOKE_WORKER_FILE_CACHE_TURNS_H_
#define HOOKE_WORKER_FILE_CACHE_TURNS_H_

// A line of threads that do something one after another, in the order in which they came. Nobody waits for long behind
// a thread that stands still, but a thread that moves may take its time. Thread-safe.

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/steady_condition.h"

namespace hooke {

class Turns {
 public:
  // `clock` is steady. It is called from any thread.
  Turns(absl::Duration still_max, std::function<absl::Time()> clock)
      : still_max_(still_max), clock_(std::move(clock)), moved_(clock_()) {}

  // Waits for this thread's turn. After OK the thread must call End. `stopped` is asked several times a second; its
  // error ends the wait. UNAVAILABLE: the thread whose turn it is has not moved for `still_max`. After an error there
  // is no turn to end.
  absl::Status Take(const std::function<absl::Status()>& stopped);
  // Called by the thread whose turn it is, when it has done a piece of its work.
  void Move();
  void End();

 private:
  // Waits a moment. Returns whether ticket `mine` is the first one. UNAVAILABLE as above.
  absl::StatusOr<bool> IsFirst(uint64_t mine);
  void Leave(uint64_t ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration still_max_;
  const std::function<absl::Time()> clock_;
  absl::Mutex mutex_;
  SteadyCondition ended_;
  uint64_t last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<uint64_t> line_ ABSL_GUARDED_BY(mutex_);  // Tickets. The first one has its turn.
  absl::Time moved_ ABSL_GUARDED_BY(mutex_);         // When the first one last moved, or became the first.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_FILE_CACHE_TURNS_H_
