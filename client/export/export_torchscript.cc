#include "client/export/export_torchscript.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/process/program_output.h"
#include "files/new_file.h"

namespace hooke {
namespace {

absl::Status Interrupted(const std::string& path) {
  return absl::CancelledError(absl::StrCat("interrupted; ", path, " was not written"));
}

absl::Status Convert(const std::string& program, const std::string& from, const std::string& to,
                     const std::string& path, Interrupts& interrupts) {
  const absl::StatusOr<ProgramOutput> output =
      RunForOutput({program, absl::StrCat("--model=", from), absl::StrCat("--torchscript=", to)}, interrupts);
  if (!output.ok()) return output.status();
  switch (output->exit_code) {
    case 0:
      return absl::OkStatus();
    case 128 + SIGTERM:  // RunForOutput passes an interrupt on as SIGTERM.
      return Interrupted(path);
    default:
      break;
  }
  const std::string how = output->exit_code > 128 ? absl::StrCat("was killed by signal ", output->exit_code - 128)
                                                  : absl::StrCat("has failed (exit status ", output->exit_code, ")");
  return absl::AbortedError(
      absl::StrCat(program, " ", how, "; ", path, " was not written. --format safetensors does without it"));
}

}  // namespace

absl::StatusOr<Exported> ExportTorchScript(const v1::JobStatus& job, const ExportOptions& options,
                                           const std::string& rank_program, Interrupts& interrupts) {
  if (absl::Status status = CheckNewFile(options.path, options.force); !status.ok()) return status;
  if (access(rank_program.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat(rank_program,
                     ": no such program; hooke-rank makes the TorchScript file and is looked for beside hooke (bazel "
                     "build //:programs puts them into one folder), or where --programs-dir says"));
  }
  const std::string part = absl::StrCat(options.path, ".part-", getpid());
  ExportOptions center = options;
  center.path = absl::StrCat(part, ".safetensors");
  center.interrupts = &interrupts;
  center.force = true;  // A killed process with our pid may have left such a file.
  const auto remove = absl::MakeCleanup([&] {
    unlink(center.path.c_str());
    unlink(part.c_str());
  });
  absl::StatusOr<Exported> exported = ExportCenter(job, center);
  if (absl::IsCancelled(exported.status())) return Interrupted(options.path);
  // The user knows only the final file, so the error must not name the temporary one.
  if (!exported.ok()) {
    const absl::Status& status = exported.status();
    return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{center.path, options.path}}));
  }
  if (!exported->described) {
    return absl::FailedPreconditionError(
        absl::StrCat(exported->notes.front(), "; --format safetensors exports what is known"));
  }
  if (absl::Status status = Convert(rank_program, center.path, part, options.path, interrupts); !status.ok())
    return status;
  std::error_code error;
  exported->bytes = std::filesystem::file_size(part, error);
  if (error)
    return absl::AbortedError(absl::StrCat(rank_program, " has not written ", options.path, ": ", error.message(),
                                           "; --format safetensors does without it"));
  if (absl::Status status = Publish(part, options.path, options.force); !status.ok()) return status;
  return exported;
}

}  // namespace hooke
