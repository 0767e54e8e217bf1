#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/text/listing.h"
#include "client/text/terminal_text.h"

namespace hooke {
namespace {

struct ScaleFlags {
  std::string job_id;
  uint64_t groups = 0;
  std::string site;
};

int Scale(const Invocation& invocation, const ScaleFlags& flags) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  v1::ScaleJobRequest request;
  request.set_job_id(flags.job_id);
  request.set_groups(static_cast<uint32_t>(flags.groups));
  request.set_site(flags.site);
  const absl::StatusOr<v1::JobStatus> job = coordinator->ScaleJob(request);
  if (!job.ok()) return Report(invocation, job.status());
  if (invocation.json()) {
    *invocation.out << DumpJson(JobToJson(*job), 2) << std::endl;
  } else {
    *invocation.out << Printable(job->job_id()) << ": " << flags.groups << (flags.groups == 1 ? " group" : " groups")
                    << (flags.site.empty() ? "" : absl::StrCat(" at ", Printable(flags.site)))
                    << " from the next exchange on; `hooke watch " << Printable(job->job_id()) << "` shows it"
                    << std::endl;
  }
  return kSucceeded;
}

}  // namespace

void AddScaleCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("scale", "Change the number of a job's groups while it trains");
  auto flags = std::make_shared<ScaleFlags>();
  command.Add("JOB", flags->job_id, "The job's id, as `hooke jobs` lists it").Required().Type("");
  command.Add("--groups", flags->groups, "The new number of groups")
      .Required()
      .Range(uint64_t{1}, uint64_t{1024})
      .Type("N");
  command.Add("--site", flags->site, "Of a job with several kinds of groups: change those that run at this site")
      .Type("SITE");
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Footer(
      "All groups of the job exchange with the servers and end. Then the new number of groups divides\n"
      "the data that is left of the epoch. Training stands still for some seconds.");
  command.Action([&invocation, flags] { return Scale(invocation, *flags); });
}

}  // namespace hooke
