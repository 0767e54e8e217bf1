#ifndef HOOKE_CLIENT_COMMANDS_COMMAND_H_
#define HOOKE_CLIENT_COMMANDS_COMMAND_H_

// Shared by all commands. Each command_NAME.cc adds its subcommand to the command line. Parsing sets `action`; only
// running that does anything. A `hooke` process runs one command in one thread.

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
  // Set by main:
  std::istream* in = nullptr;
  bool in_terminal = false;  // Whether `in` is a terminal.
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  bool terminal = false;  // Whether `out` is a terminal.
  int width = 80;         // Columns of the terminal.
  int height = 24;
  std::string home;                     // HOME; may be empty.
  std::string environment_coordinator;  // HOOKE_COORDINATOR; may be empty.
  std::string programs_dir;             // The folder of this program.

  // Set by flags:
  std::string coordinator;
  std::string output = "table";
  std::function<int()> action;

  bool json() const { return output == "json"; }
  // $HOME/.hooke/up, or "" if there is no HOME.
  std::string default_state_dir() const;
};

// Prints "hooke: MESSAGE" and returns `code`.
int Report(const Invocation& invocation, const absl::Status& status, ExitCode code = kFailed);

// Connects to the coordinator that flags and environment choose. On an error it reports it, sets `code` and returns
// null.
std::unique_ptr<CoordinatorClient> ConnectOrReport(const Invocation& invocation, int& code);

void AddCoordinatorFlag(CLI::App& app, Invocation& invocation);
void AddOutputFlag(CLI::App& app, Invocation& invocation);

// Each function adds one command. `invocation` must outlive `app`.
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

// Adds all commands and the text of `hooke --help`.
void AddAllCommands(CLI::App& app, Invocation& invocation);

// Parses the command line, runs its command and returns the exit code. If the command line is wrong, `err` gets an
// explanation.
int RunCommandLine(int argc, const char* const* argv, Invocation& invocation);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_COMMAND_H_
