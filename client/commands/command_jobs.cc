#include "absl/time/clock.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/text/job_details.h"
#include "client/text/listing.h"

namespace hooke {
namespace {

int ListJobs(const Invocation& invocation) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::ListJobsResponse> jobs = coordinator->ListJobs();
  if (!jobs.ok()) return Report(invocation, jobs.status());
  if (invocation.json()) {
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const v1::JobStatus& job : jobs->jobs()) array.push_back(JobToJson(job));
    *invocation.out << DumpJson({{"jobs", array}, {"left_out", jobs->left_out()}}, 2) << std::endl;
  } else if (jobs->jobs().empty()) {
    *invocation.out << "no jobs yet; `hooke submit FILE` starts one" << std::endl;
  } else {
    *invocation.out << JobsTable(*jobs, absl::Now(), absl::LocalTimeZone()) << std::flush;
  }
  return kSucceeded;
}

int ShowJob(const Invocation& invocation, const std::string& job_id) {
  if (job_id.empty()) {  // An unset variable in a script gives an empty JOB.
    return Report(invocation, absl::InvalidArgumentError("JOB is empty; name a job, or leave it out to list all"),
                  kUsage);
  }
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::JobStatus> job = coordinator->GetJob(job_id);
  if (!job.ok()) return Report(invocation, job.status());
  if (invocation.json()) {
    *invocation.out << DumpJson(JobToJson(*job), 2) << std::endl;
  } else {
    *invocation.out << JobDetails(*job, absl::FromUnixMillis(job->now_unix_ms()), absl::LocalTimeZone()) << std::flush;
  }
  return kSucceeded;
}

}  // namespace

void AddJobsCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("jobs", "List jobs, the newest first; or show one in full");
  auto job = std::make_shared<std::string>();
  command.Add("JOB", *job, "Show only this job: its state, times, groups, center and last notices").Type("");
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Footer(
      "A group's start is how often it was started. \"-\" stands for what is not known: before the first step, and for "
      "a "
      "second or two after the coordinator was started again.");
  command.Action(
      [&invocation, job, &command] { return command.Given("JOB") ? ShowJob(invocation, *job) : ListJobs(invocation); });
}

}  // namespace hooke
