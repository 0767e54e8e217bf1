#include "client/commands/command.h"

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/commands/coordinator_address.h"
#include "client/coordinator_client.h"
#include "client/text/job_text.h"

namespace hooke {
namespace {

// CLI11 only says that a command is missing. Returns a message that names the unknown word, or "" if there is none.
std::string UnknownCommand(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (word == "--coordinator") ++i;
    if (absl::StartsWith(word, "-")) continue;
    return absl::StrCat("there is no command \"", word, "\"; the commands are ", absl::StrJoin(names, ", "));
  }
  return "";
}

}  // namespace

std::string Invocation::default_state_dir() const {
  return home.empty() ? "" : (std::filesystem::path(home) / ".hooke" / "up").string();
}

int Report(const Invocation& invocation, const absl::Status& status, ExitCode code) {
  // Some messages have several lines. Each is made printable, so that no peer's text steers the terminal.
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) lines.push_back(Printable(line));
  *invocation.err << "hooke: " << absl::StrJoin(lines, "\n") << std::endl;
  return code;
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
  absl::StatusOr<std::unique_ptr<CoordinatorClient>> client = CoordinatorClient::Connect(*address, kTimeout);
  if (!client.ok()) {
    code = Report(invocation, client.status());
    return nullptr;
  }
  return *std::move(client);
}

void AddCoordinatorFlag(CLI::App& app, Invocation& invocation) {
  app.add_option(
         "--coordinator", invocation.coordinator,
         absl::StrCat(
             "The coordinator's address. Default: $HOOKE_COORDINATOR, else the cluster that `hooke up` runs from its "
             "default folder, else ",
             kDefaultCoordinator))
      ->type_name("HOST:PORT");
}

void AddOutputFlag(CLI::App& app, Invocation& invocation) {
  app.add_option("--output", invocation.output, "How to print: for people or for programs. Default: table")
      ->type_name("table|json")
      ->check(CLI::IsMember({"table", "json"}).description(""));
}

void AddAllCommands(CLI::App& app, Invocation& invocation) {
  app.description("Hooke trains one model with many MPI groups, tied together by elastic averaging.");
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "Print this help and end");
  AddCoordinatorFlag(app, invocation);
  AddUpCommand(app, invocation);
  AddSubmitCommand(app, invocation);
  AddJobsCommand(app, invocation);
  AddWatchCommand(app, invocation);
  AddLogsCommand(app, invocation);
  AddCancelCommand(app, invocation);
  AddNodesCommand(app, invocation);
  AddProfileCommand(app, invocation);
  AddBenchCommand(app, invocation);
  AddExportCommand(app, invocation);
  AddVersionCommand(app, invocation);
  AddCompletionCommand(app, invocation);
  app.footer(
      "Examples:\n"
      "  hooke up                                        a cluster on this machine, until Ctrl-C\n"
      "  hooke submit deploy/jobs/fashion.yaml --watch   train, and look on (in another terminal)\n"
      "  hooke jobs                                      what runs and what has run\n"
      "  hooke export fashion-1 model.safetensors        take the trained model away\n"
      "\n"
      "Exit codes: 0 done, or the job succeeded; 1 failed; 2 wrong command line or job file; 130 interrupted.\n"
      "`hooke COMMAND --help` says more about a command; docs/job-file.md about job files.");
}

int RunCommandLine(int argc, const char* const* argv, Invocation& invocation) {
  CLI::App app("", "hooke");
  AddAllCommands(app, invocation);
  if (argc < 2) {
    *invocation.err << app.help();
    return kUsage;
  }
  // CLI11 reports errors by exceptions; they end here.
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    *invocation.out << (chosen.empty() ? app.help() : chosen.front()->help("hooke")) << std::flush;
    return kSucceeded;
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    const std::string unknown = chosen.empty() ? UnknownCommand(app, argc, argv) : "";
    if (!unknown.empty()) return Report(invocation, absl::InvalidArgumentError(unknown), kUsage);
    *invocation.err << "hooke: " << error.what() << "\nhooke: `hooke "
                    << (chosen.empty() ? "" : chosen.front()->get_name() + " ") << "--help` says what is allowed"
                    << std::endl;
    return kUsage;
  }
  return invocation.action();
}

}  // namespace hooke
