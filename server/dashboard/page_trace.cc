#include "server/dashboard/page_trace.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clocks/instant.h"
#include "job/trace/profile_trace.h"
#include "wire/calls/exchange_reads.h"

namespace hooke {
namespace {

using Ranks = std::vector<v1::ReadProfileResponse>;

absl::StatusOr<Ranks> ReadProfiles(Coordinator& coordinator, const std::string& job_id) {
  absl::StatusOr<std::vector<ProfileKey>> keys = coordinator.ListProfiles(job_id);
  if (!keys.ok()) return keys.status();
  Ranks ranks;
  size_t bytes = 0;
  for (const ProfileKey& key : *keys) {
    absl::StatusOr<v1::RankProfile> profile = coordinator.ReadProfile(key);
    if (absl::IsNotFound(profile.status())) continue;  // It was removed after ListProfiles, or cut short.
    if (!profile.ok()) return profile.status();
    bytes += profile->ByteSizeLong();
    if (bytes > PageTrace::kProfileBytesMax) {
      return absl::ResourceExhaustedError(absl::StrCat("the trace of ", keys->size(),
                                                       " ranks is too large for this page; use `hooke profile ", job_id,
                                                       " --trace FILE`"));
    }
    v1::ReadProfileResponse& rank = ranks.emplace_back();
    rank.set_group(key.group);
    rank.set_rank(key.rank);
    *rank.mutable_profile() = *std::move(profile);
  }
  return ranks;
}

std::vector<ServerExchanges> ReadServers(const v1::JobStatus& job, const PageTraceOptions& options) {
  ExchangeReadsOptions reads;
  reads.job_id = job.job_id();
  reads.servers.assign(job.servers().begin(), job.servers().end());
  reads.token = options.token;
  reads.timeout = options.server_timeout;
  std::vector<absl::StatusOr<v1::ReadExchangesResponse>> answers = ReadExchanges(reads);
  std::vector<ServerExchanges> servers;
  servers.reserve(answers.size());
  for (size_t i = 0; i < answers.size(); ++i) servers.push_back({reads.servers[i], std::move(answers[i])});
  return servers;
}

}  // namespace

absl::StatusOr<std::string> PageTrace::Make(const std::string& job_id) {
  if (makes_one_.exchange(true)) {
    return absl::UnavailableError("another trace is being made; try again in some seconds");
  }
  absl::StatusOr<std::string> trace = MakeAlone(job_id);
  makes_one_ = false;
  return trace;
}

absl::StatusOr<std::string> PageTrace::MakeAlone(const std::string& job_id) {
  const absl::StatusOr<v1::JobStatus> job = coordinator_.Status(job_id, InstantNow());
  if (!job.ok()) return job.status();
  const absl::StatusOr<v1::ReadStartsResponse> starts = coordinator_.Starts(job_id);
  if (!starts.ok()) return starts.status();
  absl::StatusOr<Ranks> ranks = ReadProfiles(coordinator_, job_id);
  // Before the first profile the trace has the starts alone.
  if (absl::IsFailedPrecondition(ranks.status()) && !starts->starts().empty()) ranks = Ranks();
  if (!ranks.ok()) return ranks.status();
  const std::vector<ServerExchanges> servers =
      ranks->empty() ? std::vector<ServerExchanges>() : ReadServers(*job, options_);
  absl::StatusOr<Trace> trace = MakeTrace(job_id, *ranks, *starts, servers);
  if (!trace.ok()) return trace.status();
  return std::move(trace->json);
}

}  // namespace hooke
