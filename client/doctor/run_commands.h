#ifndef HOOKE_CLIENT_DOCTOR_RUN_COMMANDS_H_
#define HOOKE_CLIENT_DOCTOR_RUN_COMMANDS_H_

// Runs commands side by side, each bounded in time and output.

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hooke {

struct CommandToRun {
  std::vector<std::string> arguments;  // A program, looked for on the PATH, and its arguments.
  absl::Duration limit = absl::Seconds(5);
};

struct CommandOutcome {
  // 128 + N if signal N ended the command, 127 if there is no such program, as in a shell. -1: it was stopped at its
  // limit, or could not be started.
  int exit_code = -1;
  bool timed_out = false;
  std::string output;   // What it printed on stdout and stderr, at most 256 KiB; the rest is dropped.
  absl::Duration took;  // From its start to its end.

  bool ok() const { return exit_code == 0; }
  bool missing() const { return exit_code == 127; }
};

// Runs all commands at once, in the C locale, with an empty stdin. Returns their outcomes in the same order. A command
// gets SIGTERM at its limit, and SIGKILL half a second later. One that the kernel then cannot end, because its disk
// hangs, is left behind. Call it before the process has threads.
std::vector<CommandOutcome> RunCommands(const std::vector<CommandToRun>& commands);

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_RUN_COMMANDS_H_
