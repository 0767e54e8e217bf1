#ifndef HOOKE_WORKER_LAUNCH_COMMAND_SCRIPT_H_
#define HOOKE_WORKER_LAUNCH_COMMAND_SCRIPT_H_

// The shell script that runs a job's command as one rank, and says how the command ended. The launchers do not tell
// that reliably: MPICH's waits for the other ranks when one exits. Pure but for FindCommand.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hooke {

// Returns the script. It prints into the pipes of its rank in `folder` (RankOutput). Its first line on stderr is
// "MARK started". If the command exits with a status other than 0, its last line there is "MARK STATUS". For a command
// that a signal has killed, the status is 128 plus the signal's number. After that the script ends in the same way as
// the command. If the script is killed, the command is killed too. The arguments are in the script, because on its
// command line a launcher takes ":" for the start of another program.
std::string CommandScript(absl::Span<const std::string> arguments, const std::string& folder, absl::string_view mark);

// Returns whether `line` is the first line of a script with this mark.
bool IsStartLine(absl::string_view line, absl::string_view mark);

struct ExitLine {
  int status = 0;
  absl::string_view before;  // The command's own last words, if its last line has no line end.
};

// Reads the last line of a script with this mark; nullopt if `line` is another line. `before` points into `line`.
std::optional<ExitLine> ReadExitLine(absl::string_view line, absl::string_view mark);

// Returns the signal that a status of ExitLine stands for; nullopt if the status is an exit status. A shell inside the
// command also exits with 128 plus the signal's number if its own child is killed, so that counts as a signal too.
std::optional<int> SignalOfStatus(int status);

// Checks that the program can be started in the folder. `path` is the PATH of its environment. NOT_FOUND: the folder or
// the program is missing. FAILED_PRECONDITION: it is no folder, or no program that this user may run.
absl::Status FindCommand(const std::string& program, const std::string& folder, absl::string_view path);

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_COMMAND_SCRIPT_H_
