// `hooke export-tensorboard`: the history of jobs as a folder that TensorBoard shows.

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/history/event_files.h"
#include "files/new_file.h"

namespace hooke {
namespace {

struct TensorBoardFlags {
  std::string job;
  std::string folder;
  bool force = false;
};

// Writes the file, and makes the folders that it needs. A file that was there before is replaced if `force` is set.
absl::Status WriteFile(const std::filesystem::path& path, const std::string& content, bool force) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat(path.parent_path().string(),
                                                      ": the folder cannot be made: ", error.message(),
                                                      "; name another one, or change its permissions"));
  }
  return WriteNewFile(path.string(), content, force);
}

int ExportTensorBoard(const Invocation& invocation, const TensorBoardFlags& flags) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<std::vector<v1::HistoryPoint>> points = coordinator->ReadHistory(flags.job);
  if (!points.ok()) return Report(invocation, points.status());
  const std::vector<EventFile> files = EventFiles(flags.job, *points);
  const std::filesystem::path folder = flags.folder;
  // Nothing is written if one of the files is in the way.
  for (const EventFile& file : files) {
    if (absl::Status status = CheckNewFile((folder / file.path).string(), flags.force); !status.ok()) {
      return Report(invocation, status);
    }
  }
  for (const EventFile& file : files) {
    if (absl::Status status = WriteFile(folder / file.path, file.content, flags.force); !status.ok()) {
      return Report(invocation, status);
    }
  }
  *invocation.out << flags.folder << ": " << flags.job << ", " << files.size() << " runs, " << points->size()
                  << " points; to see them: tensorboard --logdir " << flags.folder << std::endl;
  return kSucceeded;
}

}  // namespace

void AddTensorBoardCommand(Command& program, Invocation& invocation) {
  Command& command =
      program.AddCommand("export-tensorboard", "Write a job's history to a folder that TensorBoard shows");
  auto flags = std::make_shared<TensorBoardFlags>();
  command.Add("JOB", flags->job, "The job's id, as `hooke jobs` lists it").Required().Type("");
  command.Add("DIR", flags->folder, "The folder, which may hold other jobs; made if it is not there")
      .Required()
      .NotEmpty()
      .Type("");
  command.Add("--force", flags->force, "Replace the files of an earlier export of this job");
  AddCoordinatorFlag(command, invocation);
  command.Footer(
      "Each group and the center become a run of TensorBoard, `JOB/group-0` and `JOB/center`. docs/see.md says what "
      "the\n"
      "values are.");
  command.Action([&invocation, flags] { return ExportTensorBoard(invocation, *flags); });
}

}  // namespace hooke
