#ifndef HOOKE_SERVER_PARAMETERS_SNAPSHOT_LOOP_H_
#define HOOKE_SERVER_PARAMETERS_SNAPSHOT_LOOP_H_

// A thread that calls one function every so often, and a last time when it is stopped. Used by ParameterServer to write
// snapshots.

#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

class SnapshotLoop {
 public:
  // The interval goes by `clock`. `snapshot` runs on one thread at a time, and logs its own errors: those of the
  // thread's calls are dropped. It outlives the loop.
  SnapshotLoop(absl::Duration interval, std::function<absl::Status()> snapshot,
               std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>());
  // Ends the thread without a last call, where Stop was not called.
  ~SnapshotLoop();

  // Ends the thread, waiting for a call that runs, then calls once more and returns what that returns. A second Stop
  // does nothing.
  absl::Status Stop();

 private:
  void Run();
  // False: it has ended before.
  bool EndThread();

  const absl::Duration interval_;
  const std::function<absl::Status()> snapshot_;
  const std::shared_ptr<WaitClock> clock_;
  absl::Mutex mutex_;
  SteadyCondition stops_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Joined by who sets stopping_.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SNAPSHOT_LOOP_H_
