#include "absl/time/clock.h"
#include "client/command.h"
#include "client/coordinator_client.h"
#include "client/listing.h"

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
    *invocation.out << JobsTable(*jobs, absl::Now()) << std::flush;
  }
  return kSucceeded;
}

}  // namespace

void AddJobsCommand(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("jobs", "List jobs, the newest first");
  AddCoordinatorFlag(*command, invocation);
  AddOutputFlag(*command, invocation);
  command->callback([&invocation] { invocation.action = [&invocation] { return ListJobs(invocation); }; });
}

}  // namespace hooke
