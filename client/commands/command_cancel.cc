#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/text/listing.h"
#include "client/text/terminal_text.h"
#include "job/state_word.h"

namespace hooke {
namespace {

int Cancel(const Invocation& invocation, const std::string& job_id) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::JobStatus> job = coordinator->CancelJob(job_id);
  if (!job.ok()) return Report(invocation, job.status());
  if (invocation.json()) {
    *invocation.out << DumpJson(JobToJson(*job), 2) << std::endl;
  } else {
    *invocation.out << Printable(job->job_id()) << ": " << JobStateText(job->state()) << std::endl;
  }
  return kSucceeded;
}

}  // namespace

void AddCancelCommand(Command& program, Invocation& invocation) {
  Command& command =
      program.AddCommand("cancel", "Stop a job. Its center stays as it is; a job that has ended stays as it ended");
  auto job = std::make_shared<std::string>();
  command.Add("JOB", *job, "The job's id, as `hooke jobs` lists it").Required().Type("");
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Action([&invocation, job] { return Cancel(invocation, *job); });
}

}  // namespace hooke
