#include "worker/launch/command_script.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/launch/find_program.h"
#include "worker/launch/rank_output.h"
#include "worker/launch/shell_quoted.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kStarted = " started";
constexpr int kSignalBase = 128;
// Signals that end a process. The script must not send itself any other signal. SIGSTOP, for example, would stop it for
// ever.
constexpr int kDeadlySignals[] = {SIGHUP, SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGBUS,
                                  SIGFPE, SIGKILL, SIGSEGV, SIGPIPE, SIGTERM};

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

std::string CommandScript(absl::Span<const std::string> arguments, const std::string& folder, absl::string_view mark) {
  // The program dies with this shell. So if SIGTERM comes to all processes of a batch job, the shell must not end by
  // it. A handler is for the shell alone: programs begin without it, but would inherit that a signal is ignored.
  std::string script = absl::StrCat(RankOutput::Redirection(folder), "trap : TERM\necho '", mark, kStarted,
                                    "' >&2\nsetpriv --pdeathsig KILL --");
  for (const std::string& argument : arguments) absl::StrAppend(&script, " ", ShellQuoted(argument));
  absl::StrAppend(&script, "\nstatus=$?\ntrap - TERM\n[ $status -eq 0 ] && exit 0\necho \"", mark, " $status\" >&2\n");
  absl::StrAppend(&script, "case $status in\n");
  for (const int signal : kDeadlySignals) {
    absl::StrAppend(&script, kSignalBase + signal, ") kill -", signal, " $$ ;;\n");
  }
  absl::StrAppend(&script, "esac\nexit $status\n");
  return script;
}

bool IsStartLine(absl::string_view line, absl::string_view mark) {
  return absl::ConsumePrefix(&line, mark) && line == kStarted;
}

std::optional<ExitLine> ReadExitLine(absl::string_view line, absl::string_view mark) {
  const size_t at = line.rfind(mark);
  if (at == absl::string_view::npos) return std::nullopt;
  ExitLine exit;
  exit.before = line.substr(0, at);
  absl::string_view status = line.substr(at + mark.size());
  if (!absl::ConsumePrefix(&status, " ") || !absl::SimpleAtoi(status, &exit.status)) return std::nullopt;
  return exit.status >= 1 && exit.status <= 255 ? std::optional<ExitLine>(exit) : std::nullopt;
}

std::optional<int> SignalOfStatus(int status) {
  const int signal = status - kSignalBase;
  const bool deadly =
      std::find(std::begin(kDeadlySignals), std::end(kDeadlySignals), signal) != std::end(kDeadlySignals);
  return deadly ? std::optional<int>(signal) : std::nullopt;
}

absl::Status FindCommand(const std::string& program, const std::string& folder, absl::string_view path) {
  std::error_code error;
  if (!fs::exists(folder, error)) {
    return absl::NotFoundError(absl::StrCat("there is no folder ", folder,
                                            " on this node, in which the command would run; make it there, or name "
                                            "another one by the job's key directory"));
  }
  if (!IsFolder(folder) || access(folder.c_str(), X_OK) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder,
        ", in which the command would run, is no folder that the worker may enter; see the job's key directory"));
  }
  if (absl::StrContains(program, '/')) {
    const fs::path file = fs::path(folder) / program;
    if (IsProgram(file.string())) return absl::OkStatus();
    if (!fs::exists(file, error)) {
      return absl::NotFoundError(
          absl::StrCat("there is no program ", file.string(), " on this node; install it there, or mend the command"));
    }
    return absl::FailedPreconditionError(
        absl::StrCat(file.string(),
                     " is no program that the worker may run; make it executable (chmod +x), or name "
                     "its interpreter first in the command"));
  }
  for (const absl::string_view entry : absl::StrSplit(path, ':')) {
    if (IsProgram((fs::path(folder) / std::string(entry) / program).string())) return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("there is no program ", program, " on this node's PATH (", path,
                                          "); install it there, or write its whole path into the command"));
}

}  // namespace hooke
