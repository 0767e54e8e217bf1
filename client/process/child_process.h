#ifndef HOOKE_CLIENT_PROCESS_CHILD_PROCESS_H_
#define HOOKE_CLIENT_PROCESS_CHILD_PROCESS_H_

// A child process in its own process group. It cannot outlive this process: when the thread that started it ends, for
// whatever reason, the kernel kills the child (SIGKILL). Only that thread may use it.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hooke {

struct ChildOptions {
  std::vector<std::string> arguments;  // The program's path, then its arguments.
  std::string log_path;  // Gets stdout and stderr; an older log is renamed to log_path + ".1". stdin is empty.
  // If >= 0, this descriptor gets the child's stdout instead of a log, and the child's stderr goes to this process's
  // stderr. Not owned.
  int output_fd = -1;
};

class Child {
 public:
  // Starts the child. FAILED_PRECONDITION if the program cannot be started or the log cannot be written.
  // RESOURCE_EXHAUSTED if a descriptor is missing.
  static absl::StatusOr<Child> Start(const ChildOptions& options);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) = delete;
  // Kills the child, if it still runs, and waits for its end.
  ~Child();

  pid_t pid() const { return pid_; }

  // Returns how the child ended, like "exit status 1" or "killed by signal 9 (Killed)"; nullopt while it runs.
  const std::optional<std::string>& Ended();

  // Returns the exit code, once the child has ended. As in a shell, it is 128 + N if signal N ended the child.
  int exit_code() const { return exit_code_; }

  // Waits at most `wait` for the child's end. Returns true if it has ended.
  bool EndsWithin(absl::Duration wait);

  // Sends the signal to the child's whole process group. No effect once the child has ended.
  void Signal(int signal);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;  // -1 after a move.
  std::optional<std::string> ended_;
  int exit_code_ = -1;
};

// Returns the last five lines of a child's log, indented.
std::string EndOfLog(const std::string& log_path);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROCESS_CHILD_PROCESS_H_
