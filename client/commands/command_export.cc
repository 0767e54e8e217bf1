#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/export/export_center.h"
#include "client/export/export_torchscript.h"
#include "client/text/listing.h"
#include "client/text/terminal_text.h"
#include "job/command.h"

namespace hooke {
namespace {

struct ExportFlags {
  std::string job_id;
  std::string format = "safetensors";
  std::string programs_dir;
  ExportOptions options;
};

absl::StatusOr<Exported> ExportAs(const Invocation& invocation, const v1::JobStatus& job, const ExportFlags& flags,
                                  const ExportOptions& options, Interrupts& interrupts) {
  if (flags.format == "safetensors") return ExportCenter(job, options);
  if (HasCommand(job.spec())) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job.job_id(),
                     " runs a command, and only that program knows the network that a TorchScript file holds; --format "
                     "safetensors writes the tensors by their names"));
  }
  const std::string folder = flags.programs_dir.empty() ? invocation.programs_dir : flags.programs_dir;
  return ExportTorchScript(job, options, std::filesystem::path(folder) / "hooke-rank", interrupts);
}

int Export(const Invocation& invocation, const ExportFlags& flags) {
  ExportOptions options = flags.options;
  Interrupts interrupts;  // Must exist before gRPC starts threads.
  options.interrupts = &interrupts;
  int code = kSucceeded;
  const std::optional<ClusterToken> token = TokenOrReport(invocation, code);
  if (!token.has_value()) return code;
  options.token = *token;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::JobStatus> job = coordinator->GetJob(flags.job_id);
  if (!job.ok()) return Report(invocation, job.status());
  const absl::StatusOr<Exported> exported = ExportAs(invocation, *job, flags, options, interrupts);
  if (!exported.ok())
    return Report(invocation, exported.status(), absl::IsCancelled(exported.status()) ? kInterrupted : kFailed);
  for (const std::string& note : exported->notes) *invocation.err << "hooke: note: " << Printable(note) << std::endl;
  if (invocation.json()) {
    *invocation.out << DumpJson({{"job_id", flags.job_id},
                                 {"path", options.path},
                                 {"format", flags.format},
                                 {"described", exported->described},
                                 {"tensors", exported->parameters},
                                 {"values", exported->values},
                                 {"bytes", exported->bytes}})
                    << std::endl;
  } else {
    *invocation.out << absl::StrFormat("%s: %d tensors, %d values, %.1f MiB, from the center of %s\n", options.path,
                                       exported->parameters, exported->values,
                                       static_cast<double>(exported->bytes) / (1 << 20), flags.job_id)
                    << std::flush;
  }
  return kSucceeded;
}

}  // namespace

void AddExportCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("export", "Write a job's center, the trained model, to a file");
  auto flags = std::make_shared<ExportFlags>();
  command.Add("JOB", flags->job_id, "The job's id, as `hooke jobs` lists it").Required().Type("");
  command
      .Add("FILE", flags->options.path,
           "The file to write, NAME.safetensors or NAME.pt by custom; it appears complete or not at all")
      .Required()
      .Type("");
  command
      .Add("--format", flags->format,
           "safetensors: the tensors; torchscript: a module that runs without the network's source. Default: "
           "safetensors")
      .OneOf({"safetensors", "torchscript"})
      .Type("safetensors|torchscript");
  command.Add("--force", flags->options.force, "Replace a file of that name");
  command.Add("--programs-dir", flags->programs_dir, "torchscript: folder of hooke-rank. Default: that of hooke")
      .Type("DIR");
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Footer(
      "Both formats say how the model is used: mean, std, input_shape, classes, architecture and more in the "
      "metadata.\n"
      "In Python, with --format torchscript: torch.jit.load(\"FILE\")(images), images being raw bytes. docs/export.md "
      "shows both.");
  command.Action([&invocation, flags] { return Export(invocation, *flags); });
}

}  // namespace hooke
