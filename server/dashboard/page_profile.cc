#include "server/dashboard/page_profile.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/instant.h"
#include "job/profile/profile_summary.h"
#include "server/dashboard/read_profiles.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;

std::string Dump(const ordered_json& json) { return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace); }

}  // namespace

std::string ProfileJson(const std::string& job_id, const std::vector<v1::ReadProfileResponse>& ranks,
                        const std::vector<ServerCores>& servers) {
  return Dump({{"job_id", job_id},
               {"all", ProfileToJson(Summarize(ranks, ProfileSizes::kBins))},
               {"steps", StepSplitToJson(SplitSteps(ranks))},
               {"servers", ServerCoresToJson(servers)}});
}

absl::StatusOr<std::string> PageProfile::Make(const std::string& job_id) {
  const absl::StatusOr<v1::JobStatus> job = coordinator_.Status(job_id, InstantNow());
  if (!job.ok()) return job.status();
  std::vector<ServerCores> servers;
  // The servers of a job that does not run may work for other jobs.
  if (job->state() == v1::JOB_STATE_RUNNING) {
    v1::ListNodesResponse nodes;
    for (v1::NodeStatus& node : coordinator_.Nodes(InstantNow())) *nodes.add_nodes() = std::move(node);
    servers = CoresOfServers(*job, nodes);
  }
  absl::MutexLock lock(&makes_one_);
  const absl::StatusOr<std::vector<v1::ReadProfileResponse>> ranks =
      ReadProfiles(coordinator_, job_id, {kProfileBytesMax, "the profile", absl::StrCat("hooke profile ", job_id)});
  if (absl::IsFailedPrecondition(ranks.status())) {
    return Dump({{"job_id", job_id}, {"note", std::string(ranks.status().message())}});
  }
  if (!ranks.ok()) return ranks.status();
  return ProfileJson(job_id, *ranks, servers);
}

}  // namespace hooke
