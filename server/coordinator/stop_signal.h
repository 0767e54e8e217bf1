#ifndef HOOKE_SERVER_COORDINATOR_STOP_SIGNAL_H_
#define HOOKE_SERVER_COORDINATOR_STOP_SIGNAL_H_

// Tells threads to stop, and lets them pause until then. Pauses go by a steady clock. Those of absl::Notification go by
// the wall clock: where that is set back by an hour, they take an hour longer.

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace hooke {

// Thread-safe.
class StopSignal {
 public:
  void Notify();
  bool HasBeenNotified() const;
  // Returns after `pause`, or as soon as it is notified; whether it is.
  bool WaitFor(absl::Duration pause) const;

 private:
  // The standard library's, because only its condition variables wait by a steady clock.
  mutable std::mutex mutex_;
  mutable std::condition_variable notified_;
  bool stopped_ = false;  // Guarded by mutex_.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_STOP_SIGNAL_H_
