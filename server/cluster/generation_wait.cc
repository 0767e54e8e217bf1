#include "server/cluster/generation_wait.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/cluster/next_generation.h"
#include "server/records/records.h"
#include "wire/utc_time.h"

namespace hooke {
namespace {

constexpr size_t kServersNamedMax = 3;  // The most servers that a text names.

// A server that has not said yet how far the job's groups had come.
struct AwaitedServer {
  std::string address;
  const known::Server* silent = nullptr;  // The server, if it does not answer.
};

std::vector<AwaitedServer> AwaitedServers(const known::Job& job, const ServerTable& servers) {
  std::vector<AwaitedServer> awaited;
  if (NextFirstIncarnation(job.record) == 1) return awaited;
  for (const JobServer& shard : job.record.servers) {
    if (job.closed.count(KeyOf(shard)) > 0) continue;
    const known::Server* server = servers.Find(KeyOf(shard));
    awaited.push_back({shard.address, server != nullptr && server->silent ? server : nullptr});
  }
  return awaited;
}

}  // namespace

std::string NotClosedText(const known::Job& job, const ServerTable& servers) {
  std::vector<std::string> missing;
  for (const AwaitedServer& server : AwaitedServers(job, servers)) {
    missing.push_back(absl::StrCat("server ", server.address));
    if (server.silent == nullptr) continue;
    absl::StrAppend(&missing.back(), " (it has not answered since ", UtcText(server.silent->last_heard.wall), ")");
  }
  if (missing.empty()) return "";
  const size_t count = missing.size();
  const size_t more = count - std::min(count, kServersNamedMax);
  missing.resize(count - more);
  return absl::StrCat("the number of groups changes, and all have left; the next generation waits until ",
                      absl::StrJoin(missing, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "", " ",
                      count == 1 ? "says" : "say", " how far each group had come");
}

bool AwaitsSilentServer(const known::Job& job, const ServerTable& servers) {
  if (!GenerationIsEnding(job.record)) return false;
  const std::vector<AwaitedServer> awaited = AwaitedServers(job, servers);
  return std::any_of(awaited.begin(), awaited.end(),
                     [](const AwaitedServer& server) { return server.silent != nullptr; });
}

absl::Status CheckDataSufficesFor(const known::Job& job, const v1::GroupsSpec& groups) {
  for (const known::LiveGroup& live : job.live) {
    if (absl::Status status = CheckDataSuffices(job.record.spec, live.progress, groups); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace hooke
