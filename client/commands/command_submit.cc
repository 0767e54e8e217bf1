#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/commands/command.h"
#include "client/commands/job_owner.h"
#include "client/commands/send_files.h"
#include "client/commands/watch_command.h"
#include "client/coordinator_client.h"
#include "client/job_file/local_job_file.h"
#include "client/text/listing.h"
#include "clocks/process_age.h"

namespace hooke {
namespace {

constexpr absl::string_view kStandardInput = "standard input";

struct SubmitFlags {
  std::string file;
  bool watch = false;
  double patience_seconds = kDefaultPatienceSeconds;
};

// The lines of a message begin with FILE:LINE:, where editors look for it. Standard input is no file, so this function
// gives its lines another form.
std::string ProblemLines(absl::string_view message) {
  std::vector<std::string> lines = absl::StrSplit(message, '\n');
  for (std::string& line : lines) {
    absl::string_view rest = line;
    uint32_t number = 0;
    if (!absl::ConsumePrefix(&rest, absl::StrCat(kStandardInput, ":"))) continue;
    const size_t colon = rest.find(':');
    if (colon == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, colon), &number)) continue;
    line = absl::StrCat(kStandardInput, ", line ", rest);
  }
  return absl::StrJoin(lines, "\n");
}

// Reads a job file from standard input. Relative paths in it are relative to the current folder.
absl::StatusOr<LocalJobFile> ReadStandardInput(const Invocation& invocation) {
  if (invocation.in_terminal) {
    *invocation.err
        << "hooke: reading the job from the terminal; Ctrl-D at the start of a line ends it, Ctrl-C gives up"
        << std::endl;
  }
  std::string text(kJobFileBytesMax + 1, '\0');
  invocation.in->read(text.data(), static_cast<std::streamsize>(text.size()));
  if (invocation.in->bad())
    return absl::FailedPreconditionError(absl::StrCat(kStandardInput, ": cannot be read; name a job file"));
  text.resize(static_cast<size_t>(invocation.in->gcount()));
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::current_path(error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("the current folder, where paths in the job start, cannot be read: ", error.message(),
                     "; change to one that exists"));
  }
  return ParseJobFile(text, kStandardInput, folder.string());
}

// Prints the refusal of a file's job, or any other error. Returns the exit code.
int ReportRefusal(const Invocation& invocation, const JobFile& file, const absl::Status& status) {
  const Refusal refusal = ReadRefusal(status);
  if (refusal.problems.empty()) return Report(invocation, status, absl::IsCancelled(status) ? kInterrupted : kFailed);
  *invocation.err << ProblemLines(RefusalText(file, refusal)) << std::endl;
  return kUsage;
}

int Submit(const Invocation& invocation, const SubmitFlags& flags) {
  absl::StatusOr<LocalJobFile> file = flags.file == "-" ? ReadStandardInput(invocation) : ReadJobFile(flags.file);
  if (!file.ok()) {
    *invocation.err << ProblemLines(file.status().message()) << std::endl;
    return kUsage;
  }
  SetOwner(file->spec);
  std::optional<Interrupts> interrupts;
  if (flags.watch) interrupts.emplace();  // Must exist before gRPC starts threads.
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<absl::Duration> sent = SendFiles(
      invocation, *coordinator, file->spec, file->files,
      [&interrupts] { return !interrupts.has_value() || !interrupts->WaitFor(absl::ZeroDuration()).has_value(); });
  if (!sent.ok()) return ReportRefusal(invocation, *file, sent.status());
  const absl::StatusOr<std::string> job_id = coordinator->Submit(file->spec, {ProcessAge(), *sent});
  if (!job_id.ok()) return ReportRefusal(invocation, *file, job_id.status());
  SayUnknownSites(invocation, *coordinator, file->spec);
  if (invocation.json()) {
    *invocation.out << DumpJson({{"job_id", *job_id}}) << std::endl;
  } else {
    *invocation.out << "submitted " << *job_id << (flags.watch ? "" : "; `hooke watch " + *job_id + "` shows it")
                    << std::endl;
  }
  return flags.watch ? WatchToTheEnd(invocation, *coordinator, *job_id, flags.patience_seconds, *interrupts)
                     : static_cast<int>(kSucceeded);
}

}  // namespace

void AddSubmitCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("submit", "Check a job file and start the job");
  auto flags = std::make_shared<SubmitFlags>();
  command.Add("FILE", flags->file, "The job file (YAML; docs/job-file.md lists its keys), or - for standard input")
      .Required()
      .Type("");
  command.Add("--watch", flags->watch, "Then show the job as `hooke watch` does, and exit with its exit code");
  AddPatienceFlag(command, flags->patience_seconds);
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Footer(
      "A job that was accepted is stored: it survives this command, and a restart of the coordinator.\n"
      "Paths in a job file start at its folder; those in a job from standard input at the current folder.\n"
      "Exit code 2: the file is wrong, says this command or the coordinator; nothing was started.");
  command.Action([&invocation, flags] { return Submit(invocation, *flags); });
}

}  // namespace hooke
