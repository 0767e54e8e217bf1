#include <optional>

#include "client/command.h"
#include "client/coordinator_client.h"
#include "client/job_file.h"
#include "client/listing.h"
#include "client/watch_command.h"

namespace hooke {
namespace {

struct SubmitFlags {
  std::string file;
  bool watch = false;
  double patience_seconds = kDefaultPatienceSeconds;
};

int Submit(const Invocation& invocation, const SubmitFlags& flags) {
  const absl::StatusOr<v1::JobSpec> spec = ReadJobFile(flags.file);
  if (!spec.ok()) {
    *invocation.err << spec.status().message()
                    << std::endl;  // FILE:LINE: at the line's begin, where editors look for it.
    return kUsage;
  }
  std::optional<Interrupts> interrupts;
  if (flags.watch) interrupts.emplace();  // Before the first thread of gRPC.
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<std::string> job_id = coordinator->Submit(*spec);
  if (!job_id.ok()) return Report(invocation, job_id.status());
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

void AddSubmitCommand(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("submit", "Check a job file and start the job");
  auto flags = std::make_shared<SubmitFlags>();
  command->add_option("FILE", flags->file, "The job file (YAML; docs/job-file.md lists its keys)")
      ->required()
      ->type_name("");
  command->add_flag("--watch", flags->watch, "Then show the job as `hooke watch` does, and exit with its exit code");
  AddPatienceFlag(*command, flags->patience_seconds);
  AddCoordinatorFlag(*command, invocation);
  AddOutputFlag(*command, invocation);
  command->footer(
      "A job that was accepted is stored: it survives this command, and a restart of the coordinator.\n"
      "Exit code 2: the file is wrong; nothing was sent.");
  command->callback(
      [&invocation, flags] { invocation.action = [&invocation, flags] { return Submit(invocation, *flags); }; });
}

}  // namespace hooke
