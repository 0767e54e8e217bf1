#ifndef HOOKE_CLOCKS_STOP_SIGNAL_H_
#define HOOKE_CLOCKS_STOP_SIGNAL_H_

// Tells threads to stop, and lets them pause until then. The pauses do not depend on the wall clock; waits on an
// absl::Notification do.

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/steady_condition.h"

namespace hooke {

// Thread-safe.
class StopSignal {
 public:
  void Notify();
  bool HasBeenNotified() const;
  // Waits until Notify is called, or for `pause`. Returns whether Notify has been called.
  bool WaitFor(absl::Duration pause) const;

 private:
  mutable absl::Mutex mutex_;
  mutable SteadyCondition notified_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hooke

#endif  // HOOKE_CLOCKS_STOP_SIGNAL_H_
