#ifndef HOOKE_SERVER_PARAMETERS_SNAPSHOT_LOOP_H_
#define HOOKE_SERVER_PARAMETERS_SNAPSHOT_LOOP_H_

// A thread that calls one function every so often, and a last time when it is stopped. Used by ParameterServer to write
// snapshots.

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hooke {

class SnapshotLoop {
 public:
  // `snapshot` runs on one thread at a time, and logs its own errors: those of the thread's calls are dropped. It
  // outlives the loop.
  SnapshotLoop(absl::Duration interval, std::function<absl::Status()> snapshot);
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
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Joined by who sets stopping_.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SNAPSHOT_LOOP_H_
