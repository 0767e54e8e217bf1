#include "client/commands/left_run.h"

#include <filesystem>
#include <fstream>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/coordinator_client.h"
#include "client/text/terminal_text.h"
#include "files/whole_file.h"
#include "proto/job.pb.h"

namespace hooke {
namespace {

std::string PathIn(const std::string& state_dir) { return absl::StrCat(state_dir, "/run.job"); }

}  // namespace

absl::Status NoteRun(const std::string& state_dir, const std::string& job_id) {
  return WriteWholeFile(PathIn(state_dir), absl::StrCat(job_id, "\n"));
}

void ForgetRun(const std::string& state_dir) {
  std::error_code ignored;
  std::filesystem::remove(PathIn(state_dir), ignored);
}

void CancelLeftRun(const Invocation& invocation, const std::string& state_dir) {
  std::string job_id;
  std::ifstream file(PathIn(state_dir));
  if (!std::getline(file, job_id)) return;
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return;
  const absl::StatusOr<v1::JobStatus> job = coordinator->CancelJob(job_id);
  if (!job.ok() && !absl::IsNotFound(job.status())) {
    Report(invocation, job.status());
    return;
  }
  ForgetRun(state_dir);
  if (job.ok() && job->state() == v1::JOB_STATE_CANCELLED) {
    *invocation.err << "hooke: job " << Printable(job_id)
                    << " is cancelled, because the `hooke run` that followed it was killed" << std::endl;
  }
}

}  // namespace hooke
