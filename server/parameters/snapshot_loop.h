#ifndef HOOKE_SERVER_PARAMETERS_SNAPSHOT_LOOP_H_
#define HOOKE_SERVER_PARAMETERS_SNAPSHOT_LOOP_H_

// Writes snapshots at regular intervals. A thread calls a function for each, and Stop calls it a last time.

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
  // Intervals are measured by `clock`. `snapshot` runs on one thread at a time. What it uses must outlive the loop. It
  // logs its own errors, because the loop ignores those of the thread's calls.
  SnapshotLoop(absl::Duration interval, std::function<absl::Status()> snapshot,
               std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>());
  // Ends the thread; makes no last call, even if Stop was not called.
  ~SnapshotLoop();

  // Ends the thread after any running call, then calls once more and returns the result of that. A second Stop does
  // nothing.
  absl::Status Stop();

 private:
  void Run();
  // Ends the thread and waits for it. False: the thread had already ended.
  bool EndThread();

  const absl::Duration interval_;
  const std::function<absl::Status()> snapshot_;
  const std::shared_ptr<WaitClock> clock_;
  absl::Mutex mutex_;
  SteadyCondition stops_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Joined by the thread that sets stopping_.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SNAPSHOT_LOOP_H_
