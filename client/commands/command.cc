#include "client/commands/command.h"

#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/commands/coordinator_address.h"
#include "client/coordinator_client.h"
#include "client/text/job_text.h"
#include "job/near_name.h"

namespace hooke {
namespace {

// Returns a message that names the unknown word in place of a command, or "" if there is none. Parsing itself only
// reports that a command is missing.
std::string UnknownCommand(const Command& program, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CommandDescription& command : program.Describe().commands) names.push_back(command.name);
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (word == "--coordinator" || word == "--token-file") ++i;
    if (absl::StartsWith(word, "-")) continue;
    const std::string near = Nearest(word, names);
    return absl::StrCat("there is no command \"", word, "\"",
                        near.empty() ? "" : absl::StrCat(" (did you mean \"", near, "\"?)"), "; the commands are ",
                        absl::StrJoin(names, ", "));
  }
  return "";
}

// Moves the words after `hooke run ... --` into the invocation and returns the number of the others. They are not
// parsed, because they belong to the user's command even if they look like our flags.
int TakeCommand(int argc, const char* const* argv, Invocation& invocation) {
  bool is_run = false;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (word == "--" && is_run) {
      invocation.command.assign(argv + i + 1, argv + argc);
      return i;
    }
    is_run = is_run || word == "run";
  }
  return argc;
}

}  // namespace

std::string Invocation::default_state_dir() const {
  return home.empty() ? "" : (std::filesystem::path(home) / ".hooke" / "up").string();
}

std::string Invocation::absolute_token_file() const {
  const std::string& chosen = token_file.empty() ? environment_token_file : token_file;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(chosen, error);
  return chosen.empty() || error ? chosen : absolute.lexically_normal().string();
}

int Report(const Invocation& invocation, const absl::Status& status, ExitCode code) {
  // A message may have several lines. Each line is made printable, so that no peer's text steers the terminal.
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) lines.push_back(Printable(line));
  *invocation.err << "hooke: " << absl::StrJoin(lines, "\n") << std::endl;
  return code;
}

std::optional<ClusterToken> TokenOrReport(const Invocation& invocation, int& code) {
  absl::StatusOr<ClusterToken> token = ReadClusterToken(invocation.absolute_token_file());
  if (token.ok()) return *std::move(token);
  code = Report(invocation, token.status(), kUsage);
  return std::nullopt;
}

std::unique_ptr<CoordinatorClient> ConnectOrReport(const Invocation& invocation, int& code) {
  constexpr absl::Duration kTimeout = absl::Seconds(3);
  CoordinatorChoice choice;
  choice.flag = invocation.coordinator;
  choice.environment = invocation.environment_coordinator;
  choice.state_dir = invocation.default_state_dir();
  const absl::StatusOr<std::string> address = ChooseCoordinator(choice);
  if (!address.ok()) {
    code = Report(invocation, address.status(), kUsage);
    return nullptr;
  }
  const std::optional<ClusterToken> token = TokenOrReport(invocation, code);
  if (!token.has_value()) return nullptr;
  absl::StatusOr<std::unique_ptr<CoordinatorClient>> client = CoordinatorClient::Connect(*address, kTimeout, *token);
  if (!client.ok()) {
    code = Report(invocation, client.status());
    return nullptr;
  }
  return *std::move(client);
}

void AddCoordinatorFlag(Command& command, Invocation& invocation) {
  command
      .Add("--coordinator", invocation.coordinator,
           absl::StrCat(
               "The coordinator's address. Default: $HOOKE_COORDINATOR, else the cluster that `hooke up` runs from its "
               "default folder, else ",
               kDefaultCoordinator))
      .Type("HOST:PORT");
  AddTokenFlag(command, invocation);
}

void AddTokenFlag(Command& command, Invocation& invocation) {
  command
      .Add("--token-file", invocation.token_file,
           "File with the cluster's token, if the cluster has one. Default: $HOOKE_TOKEN_FILE, else no token")
      .NotEmpty()
      .Type("FILE");
}

void AddOutputFlag(Command& command, Invocation& invocation) {
  command.Add("--output", invocation.output, "How to print: for people or for programs. Default: table")
      .OneOf({"table", "json"})
      .Type("table|json");
}

std::unique_ptr<Command> MakeProgram(Invocation& invocation) {
  auto made = std::make_unique<Command>(
      "hooke", "Hooke trains one model with many MPI groups, tied together by elastic averaging.");
  Command& program = *made;
  program.HelpOfHelp("Print this help and end");
  AddCoordinatorFlag(program, invocation);
  AddUpCommand(program, invocation);
  AddRunCommand(program, invocation);
  AddSubmitCommand(program, invocation);
  AddJobsCommand(program, invocation);
  AddWatchCommand(program, invocation);
  AddTopCommand(program, invocation);
  AddLogsCommand(program, invocation);
  AddResumeCommand(program, invocation);
  AddCancelCommand(program, invocation);
  AddScaleCommand(program, invocation);
  AddForgetCommand(program, invocation);
  AddNodesCommand(program, invocation);
  AddDoctorCommand(program, invocation);
  AddDrainCommand(program, invocation);
  AddProfileCommand(program, invocation);
  AddMetricsCommand(program, invocation);
  AddPlotCommand(program, invocation);
  AddTensorBoardCommand(program, invocation);
  AddBenchCommand(program, invocation);
  AddExportCommand(program, invocation);
  AddVersionCommand(program, invocation);
  AddCompletionCommand(program, invocation);
  program.Footer(
      "Examples:\n"
      "  hooke up                                        a cluster on this machine, until Ctrl-C\n"
      "  hooke submit deploy/jobs/fashion.yaml --watch   train, and look on (in another terminal)\n"
      "  hooke run --groups 2 -- python3 train.py        your own program as the ranks, on this machine\n"
      "  hooke jobs                                      what runs and what has run\n"
      "  hooke export fashion-1 model.safetensors        take the trained model away\n"
      "\n"
      "Exit codes: 0 done, or the job succeeded; 1 failed; 2 wrong command line or job file; 130 interrupted.\n"
      "`hooke COMMAND --help` says more about a command; docs/job-file.md about job files.");
  return made;
}

int RunCommandLine(int argc, const char* const* argv, Invocation& invocation) {
  argc = TakeCommand(argc, argv, invocation);
  const std::unique_ptr<Command> program = MakeProgram(invocation);
  if (argc < 2) {
    *invocation.err << program->HelpText();
    return kUsage;
  }
  const Parsed parsed = program->Parse(argc, argv);
  if (parsed.ok()) return parsed.action();
  if (parsed.error.empty()) {
    *invocation.out << parsed.help << std::flush;
    return kSucceeded;
  }
  const std::string unknown = parsed.command.empty() ? UnknownCommand(*program, argc, argv) : "";
  if (!unknown.empty()) return Report(invocation, absl::InvalidArgumentError(unknown), kUsage);
  *invocation.err << "hooke: " << parsed.error;
  if (parsed.command == "run" && invocation.command.empty()) {
    *invocation.err << "\nhooke: the program to run comes after --, as in `hooke run --ranks 2 -- python3 train.py`";
  }
  *invocation.err << "\nhooke: `hooke " << parsed.command << (parsed.command.empty() ? "" : " ")
                  << "--help` says what is allowed" << std::endl;
  return kUsage;
}

}  // namespace hooke
