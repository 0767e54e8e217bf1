#ifndef HOOKE_WORKER_LAUNCH_PROCESS_H_
#define HOOKE_WORKER_LAUNCH_PROCESS_H_

// A child process with everything that comes from it: started, listened to line by line, and gone without a trace at
// the end.
//
// The child gets a process group of its own and is killed by the kernel when this process dies. Each Process has one
// thread, which starts the child, reads its output and reaps it: the parent-death signal comes when the *thread* that
// started a child ends, so that thread must live as long as the child. The first Process makes this process the reaper
// of its orphans (PR_SET_CHILD_SUBREAPER). Used by worker/daemon for mpirun; knows nothing of MPI.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hooke {

struct ProcessOptions {
  std::vector<std::string> argv;         // argv[0]: a path, or a name on this process's PATH.
  std::vector<std::string> environment;  // "NAME=value", complete.
  std::string folder;                    // Working folder.
  // Called on the process's thread for each line of stdout and stderr (a longer one than 64 KiB in pieces), never after
  // Wait returned the end. Must not call into the Process.
  std::function<void(absl::string_view line)> on_line;
};

struct ProcessEnd {
  int exit_status = 0;  // If signal is 0.
  int signal = 0;       // 0: it exited.

  bool ok() const { return signal == 0 && exit_status == 0; }
};

// "exited with status 3", "ended by signal 9 (Killed)".
std::string ToString(const ProcessEnd& end);
// "signal 9 (Killed)".
std::string SignalText(int signal);

class Process {
 public:
  // NOT_FOUND or UNAVAILABLE when it cannot be started.
  static absl::StatusOr<std::unique_ptr<Process>> Start(ProcessOptions options);

  // Kills what is left, at once.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  // Asks the whole tree to end (SIGTERM) and kills it (SIGKILL) when the process still lives after `grace`. Returns at
  // once; a later call can only make the grace shorter. Thread-safe.
  void Stop(absl::Duration grace);

  // The end, or nothing if it has not come by `deadline`. After the end all output was delivered and the whole tree is
  // gone (but for processes that the kernel cannot kill within seconds). Thread-safe.
  std::optional<ProcessEnd> Wait(absl::Time deadline);

 private:
  class Runner;

  Process() = default;
  absl::Status AwaitStarted();
  void WakeRunner();
  std::optional<absl::Time> kill_at() const;

  pid_t pid_ = 0;     // Constant after Start.
  int wake_fd_ = -1;  // Constant after Start; an eventfd.
  mutable absl::Mutex mutex_;
  std::optional<absl::Status> started_ ABSL_GUARDED_BY(mutex_);  // Set once, by the thread.
  std::optional<absl::Time> kill_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<ProcessEnd> end_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_PROCESS_H_
