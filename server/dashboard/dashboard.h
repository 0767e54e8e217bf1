#ifndef HOOKE_SERVER_DASHBOARD_DASHBOARD_H_
#define HOOKE_SERVER_DASHBOARD_DASHBOARD_H_

// The coordinator's web page over HTTP. The page and its scripts come from this program alone:
//
//   /                    the page; also each of its files by name, such as /app.js (web_files.h)
//   /api/page            {"action_key", "coordinator", "read_only"}: what the page must know to act
//   /api/jobs            the newest jobs (RowsJson); ?since=VERSION of an earlier answer: what has changed since then
//   /api/jobs/ID         a row and JobStatus (ViewJson); ?since=VERSION: without JobStatus if nothing has changed
//   /api/history/ID      HistoryJson; ?since=T: only points after unix_ms T; ?points=N: at most about N points, from
//                        100 to 6,000; without it 6,000
//   /api/csv/ID          all points, as `hooke metrics ID --csv` prints them
//   /api/profile/ID      ProfileJson: what collectives cost and where steps spend their time, or why that is not known
//   /api/trace/ID        the trace, as `hooke profile ID --trace FILE` writes it; one at a time
//   /api/log/ID          {"text", "next_offset"}: the last 256 KiB of the log; ?offset=N: the next 256 KiB from there
//   /api/events/ID       EventsJson: what has happened to the job; ?offset=N: from there in its log
//   /api/nodes           ListNodesResponse with its links
//   /api/download/TICKET the file of /api/export; its ticket stands in for the token
//
// Actions, by POST with the header "X-Hooke-Action: action_key" and from a page of this server only (http_server.h):
//
//   /api/check           the job file in the body as JobSpec, with its defaults; ?name=FILE, for messages
//   /api/submit          submits it: {"job_id"}; ?submission=ID is SubmitRequest.submission_id
//   /api/cancel/ID       cancels the job; JobStatus
//   /api/resume/ID       starts the held groups of the job again; JobStatus
//   /api/export/ID       looks for the job's center: PreparedJson, with the ticket of a download that must begin within
//                        30 s. Status 503: a server is away, or two models are being downloaded already
//   /api/scale/ID        changes the number of the job's groups to ?groups=N, of those at ?site=NAME if the job has
//                        several kinds; JobStatus
//
// An error of /api/ is {"error": text} with status 400 or more. If the cluster has a token, a request to /api/ must
// have it as its bearer token.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/coordinator/coordinator.h"
#include "wire/cluster_token.h"
#include "wire/host_port.h"
#include "wire/http/http_server.h"

namespace hooke {

struct DashboardOptions {
  std::string address;      // HOST:PORT; port 0 picks a free one.
  ClusterToken token;       // Of the cluster; may be empty.
  std::string coordinator;  // Where commands reach the coordinator, for the commands that the page shows.
  std::string read_only;    // Why this page may not change anything; empty: it may.
};

// The coordinator outlives the server. INVALID_ARGUMENT: the address is malformed. UNAVAILABLE: it cannot listen; the
// message names --dashboard.
absl::StatusOr<std::unique_ptr<HttpServer>> ServeDashboard(const DashboardOptions& options, Coordinator* coordinator);

// Returns why a page at `address` may not change anything, or "". A page has the permissions of `hooke`. If others
// reach it and there is no token, these are the permissions of those who reach the coordinator at `listen`.
std::string WhyReadOnly(const HostPort& address, const HostPort& listen, const ClusterToken& token);

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_DASHBOARD_H_
