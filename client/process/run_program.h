#ifndef HOOKE_CLIENT_PROCESS_RUN_PROGRAM_H_
#define HOOKE_CLIENT_PROCESS_RUN_PROGRAM_H_

// Runs a program in a test as a user's shell would. The destructor kills the program if it still runs.

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hooke {

struct ProgramOptions {
  std::vector<std::string> arguments;                 // The program's path, then its arguments.
  std::vector<std::string> environment = {"TZ=UTC"};  // The whole environment; nothing is inherited.
};

struct ProgramOutcome {
  int exit_code = -1;  // 128 + N if signal N ended the program.
  std::string out;
  std::string err;
};

class Program {
 public:
  explicit Program(const ProgramOptions& options);
  ~Program();  // Kills the program if it still runs.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  // Returns whether `text` appears on stdout within `wait`.
  bool Prints(const std::string& text, absl::Duration wait);
  // Waits for the program's end. A program that still runs after `wait` is killed; its exit code is then 137.
  ProgramOutcome Wait(absl::Duration wait = absl::Seconds(30));

 private:
  // Waits at most `wait` for output and reads it; false if both streams are closed.
  bool ReadSome(absl::Duration wait);

  pid_t pid_ = -1;
  int out_fd_ = -1;
  int err_fd_ = -1;
  ProgramOutcome result_;
};

ProgramOutcome RunProgram(const ProgramOptions& options);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROCESS_RUN_PROGRAM_H_
