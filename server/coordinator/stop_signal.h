#ifndef HOOKE_SERVER_COORDINATOR_STOP_SIGNAL_H_
#define HOOKE_SERVER_COORDINATOR_STOP_SIGNAL_H_

// Tells threads to stop, and lets them pause until then. Pauses go by the steady clock. A pause on absl::Notification
// goes by the wall clock: if that is set back by an hour, the pause takes an hour longer.

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace hooke {

// Thread-safe.
class StopSignal {
 public:
  void Notify();
  bool HasBeenNotified() const;
  // Returns true as soon as Notify was called, false if it was not within `pause`.
  bool WaitFor(absl::Duration pause) const;

 private:
  // These are the standard library's, because Abseil's condition variables wait by the wall clock.
  mutable std::mutex mutex_;
  mutable std::condition_variable notified_;
  bool stopped_ = false;  // Guarded by mutex_.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_STOP_SIGNAL_H_
