#ifndef HOOKE_CLIENT_COMMANDS_COMMAND_H_
#define HOOKE_CLIENT_COMMANDS_COMMAND_H_

// What the commands share. Each command_NAME.cc adds its subcommand to the command line; parsing chooses `action`, and
// only then something is done. `hooke` is one process for one command, so all is one thread's.

#include <CLI/CLI.hpp>
#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace hooke {

class CoordinatorClient;

enum ExitCode { kSucceeded = 0, kFailed = 1, kUsage = 2, kInterrupted = 130 };

struct Invocation {
  // From main.
  std::istream* in = nullptr;
  bool in_terminal = false;  // `in` is one.
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  bool terminal = false;  // `out` is one...
  int width = 80;         // ...of this size.
  int height = 24;
  std::string home;                     // HOME; may be empty.
  std::string environment_coordinator;  // HOOKE_COORDINATOR; may be empty.
  std::string programs_dir;             // Where this program is.

  // From the flags.
  std::string coordinator;
  std::string output = "table";
  std::function<int()> action;

  bool json() const { return output == "json"; }
  // $HOME/.hooke/up, or "" without a home.
  std::string default_state_dir() const;
};

// Prints "hooke: MESSAGE" and returns `code`.
int Report(const Invocation& invocation, const absl::Status& status, ExitCode code = kFailed);

// Connects to the coordinator that flags and environment choose. On an error it has been reported: returns null, and
// `code` is set.
std::unique_ptr<CoordinatorClient> ConnectOrReport(const Invocation& invocation, int& code);

void AddCoordinatorFlag(CLI::App& app, Invocation& invocation);
void AddOutputFlag(CLI::App& app, Invocation& invocation);

// One for each command_NAME.cc; `invocation` outlives `app`.
void AddUpCommand(CLI::App& app, Invocation& invocation);
void AddSubmitCommand(CLI::App& app, Invocation& invocation);
void AddJobsCommand(CLI::App& app, Invocation& invocation);
void AddWatchCommand(CLI::App& app, Invocation& invocation);
void AddLogsCommand(CLI::App& app, Invocation& invocation);
void AddCancelCommand(CLI::App& app, Invocation& invocation);
void AddNodesCommand(CLI::App& app, Invocation& invocation);
void AddProfileCommand(CLI::App& app, Invocation& invocation);
void AddBenchCommand(CLI::App& app, Invocation& invocation);
void AddExportCommand(CLI::App& app, Invocation& invocation);
void AddVersionCommand(CLI::App& app, Invocation& invocation);
void AddCompletionCommand(CLI::App& app, Invocation& invocation);

// All of them, and what `hooke --help` says.
void AddAllCommands(CLI::App& app, Invocation& invocation);

// Parses and acts; returns the exit code. A wrong command line is explained on `err`.
int RunCommandLine(int argc, const char* const* argv, Invocation& invocation);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_COMMAND_H_
