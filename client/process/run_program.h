#ifndef HOOKE_CLIENT_PROCESS_RUN_PROGRAM_H_
#define HOOKE_CLIENT_PROCESS_RUN_PROGRAM_H_

// Runs a program in a test as a user's shell would. The program ends with the object at the latest.

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
  int exit_code = -1;  // 128 + N if signal N ended it.
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
  // True if `text` appears on stdout within `wait`.
  bool Prints(const std::string& text, absl::Duration wait);
  // Waits for the program's end. After `wait` it is killed, which shows as exit code 137.
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
