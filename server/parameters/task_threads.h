#ifndef HOOKE_SERVER_PARAMETERS_TASK_THREADS_H_
#define HOOKE_SERVER_PARAMETERS_TASK_THREADS_H_

// A few threads that call functions, in the order in which these were posted. The queue has no bound of its own: each
// caller posts at most one function per stream or job, whose number is bounded.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace hooke {

// Thread-safe.
class TaskThreads {
 public:
  // Starts `threads` threads, or as many as the system allows. UNAVAILABLE: it allows none.
  static absl::StatusOr<std::unique_ptr<TaskThreads>> Start(size_t threads);
  // Calls Stop.
  ~TaskThreads();

  // Has `task` called soon, on one of the threads. After Stop it is never called.
  void Post(std::function<void()> task);

  // Ends the threads, which takes as long as the running tasks. Call it from one thread.
  void Stop();

 private:
  TaskThreads() = default;

  void Run();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopped_ || !tasks_.empty(); }

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TASK_THREADS_H_
