#ifndef HOOKE_SERVER_DASHBOARD_DASHBOARD_H_
#define HOOKE_SERVER_DASHBOARD_DASHBOARD_H_

// The coordinator's web page over HTTP. The page and its scripts come from this program alone:
//
//   /                    the page; also /app.js, /charts.js, /style.css and /chart.min.js
//   /api/jobs            ListJobsResponse: the newest jobs
//   /api/jobs/ID         JobStatus
//   /api/history/ID      ReadHistoryResponse: about 6,000 points at most; ?since=T: only those after unix_ms T
//   /api/log/ID          {"text", "next_offset"}: the next 256 KiB of the log; ?offset=N: from there
//   /api/nodes           ListNodesResponse with its links
//   /api/cancel/ID       by POST with the header X-Hooke-Action: cancels the job; JobStatus
//
// An error of /api/ is {"error": text} with status 400 or more. If the cluster has a token, a request to /api/ must
// have it as its bearer token.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/coordinator/coordinator.h"
#include "wire/cluster_token.h"
#include "wire/http/http_server.h"

namespace hooke {

// Serves at `address` (HOST:PORT). The coordinator outlives the server. INVALID_ARGUMENT: the address is malformed.
// UNAVAILABLE: it cannot listen; the message names --dashboard.
absl::StatusOr<std::unique_ptr<HttpServer>> ServeDashboard(const std::string& address, const ClusterToken& token,
                                                           Coordinator* coordinator);

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_DASHBOARD_H_
