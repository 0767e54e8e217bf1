#ifndef HOOKE_WORKER_LAUNCH_PROCESS_H_
#define HOOKE_WORKER_LAUNCH_PROCESS_H_

// A child process together with all its descendants. Process starts the child and reads its output line by line. At the
// end no process of the tree is left.
//
// The child gets a process group of its own and is killed by the kernel when this process dies. Each Process has one
// thread, which starts the child, reads its output and reaps it. The kernel sends the parent-death signal when the
// *thread* that started a child ends, so that thread must live as long as the child. The first Process makes this
// process the reaper of its orphans (PR_SET_CHILD_SUBREAPER).

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
#include "clocks/steady_condition.h"

namespace hooke {

struct ProcessOptions {
  std::vector<std::string> argv;         // argv[0]: a path, or a name on this process's PATH.
  std::vector<std::string> environment;  // The child's whole environment, as "NAME=value".
  std::string folder;                    // Working folder.
  // The child does not see SIGTERM, unless it unblocks it. So a SIGTERM for all processes of a batch job leaves the
  // child to this process. Its children inherit that, and Stop has to kill it.
  bool blocks_sigterm = false;
  // Called on the process's thread for each line of stdout and stderr; a line longer than 64 KiB comes in pieces. Never
  // called after Wait has returned the end. Must not call into the Process.
  std::function<void(absl::string_view line)> on_line;
};

struct ProcessEnd {
  int exit_status = 0;  // The exit status, if signal is 0.
  int signal = 0;       // The signal that killed it; 0: it exited.

  bool ok() const { return signal == 0 && exit_status == 0; }
};

// Returns a text such as "exited with status 3" or "ended by signal 9 (Killed)".
std::string ToString(const ProcessEnd& end);
// Returns a text such as "signal 9 (Killed)".
std::string SignalText(int signal);

// Runs a program to its end and returns its lines of stdout and stderr. "" if it cannot be started, fails, or has not
// ended after `limit`; then it is killed. It returns only when the kernel has ended the program. argv[0] and the
// environment are as in ProcessOptions.
std::string OutputOf(std::vector<std::string> argv, std::vector<std::string> environment, absl::Duration limit);

class Process {
 public:
  // Starts the child, through setpriv. NOT_FOUND: the folder or setpriv is missing. UNAVAILABLE: another error. If
  // argv[0] is missing, the result is OK, and the child ends with an error on its stderr.
  static absl::StatusOr<std::unique_ptr<Process>> Start(ProcessOptions options);

  // Kills all processes that are left of the tree.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  // Asks the whole tree to end (SIGTERM), and kills it (SIGKILL) if the process still lives after `grace`. Without a
  // grace it kills at once. Returns at once. A later call can only shorten the grace. Thread-safe.
  void Stop(absl::Duration grace);

  // Waits for the child's end; nullopt if it has not ended by `deadline`, a SteadyTime(). After the end all output was
  // delivered and the whole tree is gone, except for processes that the kernel cannot kill within seconds. Thread-safe.
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
  std::optional<absl::Status> started_ ABSL_GUARDED_BY(mutex_);  // Set once, by thread_.
  std::optional<absl::Time> kill_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<ProcessEnd> end_ ABSL_GUARDED_BY(mutex_);
  SteadyCondition ended_;  // Signalled when end_ is set.
  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_PROCESS_H_
