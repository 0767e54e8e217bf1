#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/text/listing.h"
#include "client/text/terminal_text.h"
#include "job/state_word.h"

namespace hooke {
namespace {

int Resume(const Invocation& invocation, const std::string& job_id) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::ResumeJobResponse> answer = coordinator->ResumeJob(job_id);
  if (!answer.ok()) return Report(invocation, answer.status());
  const v1::JobStatus& job = answer->job();
  if (invocation.json()) {
    *invocation.out << DumpJson(JobToJson(job), 2) << std::endl;
    return kSucceeded;
  }
  const uint32_t groups = answer->resumed();
  *invocation.out << Printable(job.job_id()) << ": "
                  << (groups == 0 ? "no group is held"
                                  : absl::StrCat(groups, groups == 1 ? " group starts" : " groups start", " again"))
                  << "; " << JobStateText(job.state()) << std::endl;
  return kSucceeded;
}

}  // namespace

void AddResumeCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("resume", "Start the held groups of a job again");
  auto job = std::make_shared<std::string>();
  command.Add("JOB", *job, "The job's id, as `hooke jobs` lists it").Required().Type("");
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Footer(
      "A group is held if it ended in the same way several times in a row without a new step; `hooke jobs JOB` shows "
      "its "
      "last lines. Mend the cause first, or it is held again.");
  command.Action([&invocation, job] { return Resume(invocation, *job); });
}

}  // namespace hooke
