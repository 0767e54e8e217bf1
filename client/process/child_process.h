#ifndef HOOKE_CLIENT_PROCESS_CHILD_PROCESS_H_
#define HOOKE_CLIENT_PROCESS_CHILD_PROCESS_H_

// A program that this process started, in a process group of its own, that cannot outlive it: the kernel kills it
// (SIGKILL) when the thread that started it ends, however that happens. Used by local_cluster.cc and
// program_output.cc. One thread.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hooke {

struct ChildOptions {
  std::vector<std::string> arguments;  // The program's path, then its arguments.
  std::string log_path;  // Gets stdout and stderr; the log before goes to log_path + ".1". stdin is empty.
  int output_fd = -1;    // In place of a log: gets stdout, while stderr is this process's. Stays the caller's.
};

class Child {
 public:
  // FAILED_PRECONDITION when the program cannot be started or the log cannot be written.
  static absl::StatusOr<Child> Start(const ChildOptions& options);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) = delete;
  // Kills it and waits for it, if it runs.
  ~Child();

  pid_t pid() const { return pid_; }

  // Nothing while it runs; then "exit status 1" or "killed by signal 9 (Killed)", also when asked again.
  const std::optional<std::string>& Ended();

  // Once it has ended; as a shell has it: 128 + N where signal N ended it.
  int exit_code() const { return exit_code_; }

  // As Ended, after waiting for it for at most `wait`.
  bool EndsWithin(absl::Duration wait);

  // To its whole process group; nothing once it has ended.
  void Signal(int signal);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;  // -1 after a move.
  std::optional<std::string> ended_;
  int exit_code_ = -1;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROCESS_CHILD_PROCESS_H_
