#include "server/dashboard/page_trace.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clocks/instant.h"
#include "job/trace/profile_trace.h"
#include "server/dashboard/read_profiles.h"
#include "wire/calls/exchange_reads.h"

namespace hooke {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

using Ranks = std::vector<v1::ReadProfileResponse>;

std::vector<ExchangesOfServer> ReadServers(const v1::JobStatus& job, const PageTraceOptions& options) {
  ExchangeReadsOptions reads;
  reads.job_id = job.job_id();
  reads.servers.assign(job.servers().begin(), job.servers().end());
  reads.token = options.token;
  reads.timeout = options.server_timeout;
  return ReadExchanges(reads);
}

}  // namespace

absl::StatusOr<HttpAnswer> PageTrace::Make(const std::string& job_id) {
  if (makes_one_.exchange(true)) {
    return absl::UnavailableError("another trace is being made or sent; try again in some seconds");
  }
  // The next trace may be made once nobody holds the answer of this one any more, or if this one fails.
  const std::shared_ptr<std::atomic<bool>> slot(&makes_one_, [](std::atomic<bool>* makes_one) { *makes_one = false; });
  absl::StatusOr<std::string> made = MakeAlone(job_id);
  if (!made.ok()) return made.status();
  const auto trace = std::make_shared<const std::string>(*std::move(made));
  HttpAnswer answer;
  answer.type = "application/json";
  answer.bytes = trace->size();
  answer.next = [slot, trace, sent = size_t{0}]() mutable -> absl::StatusOr<std::string> {
    std::string piece = trace->substr(sent, kPieceBytes);
    sent += piece.size();
    return piece;
  };
  return answer;
}

absl::StatusOr<std::string> PageTrace::MakeAlone(const std::string& job_id) {
  const absl::StatusOr<v1::JobStatus> job = coordinator_.Status(job_id, InstantNow());
  if (!job.ok()) return job.status();
  const absl::StatusOr<v1::ReadStartsResponse> starts = coordinator_.Starts(job_id);
  if (!starts.ok()) return starts.status();
  absl::StatusOr<Ranks> ranks = ReadProfiles(
      coordinator_, job_id, {kProfileBytesMax, "the trace", absl::StrCat("hooke profile ", job_id, " --trace FILE")});
  // Before the first profile the trace has the starts alone.
  if (absl::IsFailedPrecondition(ranks.status()) && !starts->starts().empty()) ranks = Ranks();
  if (!ranks.ok()) return ranks.status();
  const std::vector<ExchangesOfServer> servers =
      ranks->empty() ? std::vector<ExchangesOfServer>() : ReadServers(*job, options_);
  absl::StatusOr<Trace> trace = MakeTrace(job_id, *ranks, *starts, servers);
  if (!trace.ok()) return trace.status();
  return std::move(trace->json);
}

}  // namespace hooke
