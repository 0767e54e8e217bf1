#ifndef HOOKE_CLIENT_PROCESS_RUN_PROGRAM_H_
#define HOOKE_CLIENT_PROCESS_RUN_PROGRAM_H_

// Runs a program in a test as a user's shell would. Whatever happens, the program has ended when the object has.

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hooke {

struct ProgramOptions {
  std::vector<std::string> arguments;                 // The path, then the arguments.
  std::vector<std::string> environment = {"TZ=UTC"};  // All of it.
};

struct ProgramOutcome {
  int exit_code = -1;  // 128 + signal when a signal ended it.
  std::string out;
  std::string err;
};

class Program {
 public:
  explicit Program(const ProgramOptions& options);
  ~Program();  // Kills it if it runs.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  // Whether `text` appears on stdout within `wait`.
  bool Prints(const std::string& text, absl::Duration wait);
  // Waits for its end; kills it after `wait`, which shows as exit code 137.
  ProgramOutcome Wait(absl::Duration wait = absl::Seconds(30));

 private:
  // Reads what is there, waiting for at most `wait` for something to be; false when both streams are closed.
  bool ReadSome(absl::Duration wait);

  pid_t pid_ = -1;
  int out_fd_ = -1;
  int err_fd_ = -1;
  ProgramOutcome result_;
};

ProgramOutcome RunProgram(const ProgramOptions& options);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROCESS_RUN_PROGRAM_H_
