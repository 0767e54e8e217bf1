#ifndef HOOKE_CLIENT_COMMANDS_COMMAND_H_
#define HOOKE_CLIENT_COMMANDS_COMMAND_H_

// Declarations that all commands share. Each command_NAME.cc adds its subcommand, with an action, to the command line.
// Parsing chooses an action; only running the action does anything. A `hooke` process runs one command in one thread.

#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "flags/command_line.h"
#include "wire/cluster_token.h"

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
  std::string home;                     // The environment's HOME; may be empty.
  std::string environment_coordinator;  // HOOKE_COORDINATOR; may be empty.
  std::string environment_token_file;   // HOOKE_TOKEN_FILE; may be empty.
  std::string programs_dir;             // The folder of this program.

  // Set by RunCommandLine: the words after `hooke run ... --`, the user's command.
  std::vector<std::string> command;

  // Set by flags:
  std::string coordinator;
  std::string token_file;
  std::string output = "table";

  // Returns the absolute path of the token file that flags and environment choose; "" if they choose none.
  std::string absolute_token_file() const;
  bool json() const { return output == "json"; }
  // Returns $HOME/.hooke/up, or "" if there is no HOME.
  std::string default_state_dir() const;
};

// Prints "hooke: MESSAGE", with the message of `status`, and returns `code`.
int Report(const Invocation& invocation, const absl::Status& status, ExitCode code = kFailed);

// Reads the token file that flags and environment choose. If that fails, prints the error, sets `code` and returns
// nothing.
std::optional<ClusterToken> TokenOrReport(const Invocation& invocation, int& code);

// Connects to the coordinator that ChooseCoordinator (coordinator_address.h) returns. If that fails, prints the error,
// sets `code` and returns null.
std::unique_ptr<CoordinatorClient> ConnectOrReport(const Invocation& invocation, int& code);

// Adds --coordinator and --token-file.
void AddCoordinatorFlag(Command& command, Invocation& invocation);
void AddTokenFlag(Command& command, Invocation& invocation);
void AddOutputFlag(Command& command, Invocation& invocation);

// Each function adds one command. Both arguments must outlive the call of the command's action.
void AddUpCommand(Command& program, Invocation& invocation);
void AddRunCommand(Command& program, Invocation& invocation);
void AddSubmitCommand(Command& program, Invocation& invocation);
void AddJobsCommand(Command& program, Invocation& invocation);
void AddWatchCommand(Command& program, Invocation& invocation);
void AddTopCommand(Command& program, Invocation& invocation);
void AddLogsCommand(Command& program, Invocation& invocation);
void AddResumeCommand(Command& program, Invocation& invocation);
void AddCancelCommand(Command& program, Invocation& invocation);
void AddForgetCommand(Command& program, Invocation& invocation);
void AddNodesCommand(Command& program, Invocation& invocation);
void AddDoctorCommand(Command& program, Invocation& invocation);
void AddScaleCommand(Command& program, Invocation& invocation);
void AddDrainCommand(Command& program, Invocation& invocation);
void AddProfileCommand(Command& program, Invocation& invocation);
void AddMetricsCommand(Command& program, Invocation& invocation);
void AddPlotCommand(Command& program, Invocation& invocation);
void AddTensorBoardCommand(Command& program, Invocation& invocation);
void AddBenchCommand(Command& program, Invocation& invocation);
void AddExportCommand(Command& program, Invocation& invocation);
void AddVersionCommand(Command& program, Invocation& invocation);
void AddCompletionCommand(Command& program, Invocation& invocation);

// Makes the whole command line. `invocation` must outlive it.
std::unique_ptr<Command> MakeProgram(Invocation& invocation);

// Parses the command line, runs its command and returns the exit code. If the command line is wrong, `err` gets an
// explanation.
int RunCommandLine(int argc, const char* const* argv, Invocation& invocation);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_COMMAND_H_
