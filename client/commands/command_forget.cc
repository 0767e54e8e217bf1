#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/text/job_text.h"
#include "client/text/listing.h"

namespace hooke {
namespace {

int Forget(const Invocation& invocation, const std::string& job_id) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::JobStatus> job = coordinator->ForgetJob(job_id);
  if (!job.ok()) return Report(invocation, job.status());
  if (invocation.json()) {
    *invocation.out << DumpJson(JobToJson(*job), 2) << std::endl;
  } else {
    *invocation.out << Printable(job->job_id()) << ": forgotten" << std::endl;
  }
  return kSucceeded;
}

}  // namespace

void AddForgetCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand(
      "forget", "Delete a job that has ended, with its log, profiles and trained model. Export the model before");
  auto job = std::make_shared<std::string>();
  command.Add("JOB", *job, "The job's id, as `hooke jobs` lists it").Required().Type("");
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Action([&invocation, job] { return Forget(invocation, *job); });
}

}  // namespace hooke
