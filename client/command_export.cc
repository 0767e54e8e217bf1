#include "absl/strings/str_format.h"
#include "client/command.h"
#include "client/coordinator_client.h"
#include "client/export_center.h"
#include "client/listing.h"

namespace hooke {
namespace {

int Export(const Invocation& invocation, const std::string& job_id, ExportOptions options) {
  Interrupts interrupts;  // Before the first thread of gRPC.
  options.interrupts = &interrupts;
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::JobStatus> job = coordinator->GetJob(job_id);
  if (!job.ok()) return Report(invocation, job.status());
  const absl::StatusOr<Exported> exported = ExportCenter(*job, options);
  if (!exported.ok())
    return Report(invocation, exported.status(), absl::IsCancelled(exported.status()) ? kInterrupted : kFailed);
  if (invocation.json()) {
    *invocation.out << DumpJson({{"job_id", job_id},
                                 {"path", options.path},
                                 {"tensors", exported->parameters},
                                 {"values", exported->values},
                                 {"bytes", exported->bytes}})
                    << std::endl;
  } else {
    *invocation.out << absl::StrFormat("%s: %d tensors, %d values, %.1f MiB, from the center of %s\n", options.path,
                                       exported->parameters, exported->values,
                                       static_cast<double>(exported->bytes) / (1 << 20), job_id)
                    << std::flush;
  }
  return kSucceeded;
}

}  // namespace

void AddExportCommand(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("export", "Write a job's center, the trained model, to a safetensors file");
  auto job = std::make_shared<std::string>();
  auto options = std::make_shared<ExportOptions>();
  command->add_option("JOB", *job, "The job's id, as `hooke jobs` lists it")->required()->type_name("");
  command
      ->add_option("FILE", options->path,
                   "The file to write, NAME.safetensors by custom; it appears complete or not at all")
      ->required()
      ->type_name("");
  command->add_flag("--force", options->force, "Replace a file of that name");
  AddCoordinatorFlag(*command, invocation);
  AddOutputFlag(*command, invocation);
  command->footer("In Python: safetensors.torch.load_file(\"FILE\") gives names and tensors.");
  command->callback([&invocation, job, options] {
    invocation.action = [&invocation, job, options] { return Export(invocation, *job, *options); };
  });
}

}  // namespace hooke
