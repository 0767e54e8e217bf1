#ifndef HOOKE_SERVER_DASHBOARD_PAGE_TRACE_H_
#define HOOKE_SERVER_DASHBOARD_PAGE_TRACE_H_

// Makes a job's trace for a browser: the file that `hooke profile --trace` writes (job/trace/profile_trace.h). Profiles
// and starts are the coordinator's, and the job's servers are asked for their exchanges.

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/coordinator/coordinator.h"
#include "wire/cluster_token.h"
#include "wire/http/http_server.h"

namespace hooke {

struct PageTraceOptions {
  ClusterToken token = {};                                   // Of the cluster; may be empty.
  absl::Duration server_timeout = absl::Milliseconds(2500);  // For all servers of a job together.
};

// Thread-safe. Outlives the answers of Make.
class PageTrace {
 public:
  // The coordinator outlives this object.
  PageTrace(Coordinator* coordinator, PageTraceOptions options)
      : coordinator_(*coordinator), options_(std::move(options)) {}

  // Profiles of so many bytes are shown. While a trace is made it takes some twenty times their memory, and while it is
  // sent some six times.
  static constexpr size_t kProfileBytesMax = size_t{8} << 20;

  // Returns an answer that sends the file. Servers that do not answer are missing in it, which it says. NOT_FOUND: no
  // such job. FAILED_PRECONDITION: the job has neither profiles nor starts. RESOURCE_EXHAUSTED: its profiles have more
  // than kProfileBytesMax. UNAVAILABLE: another trace is being made or sent. Other errors are those of
  // Coordinator::ReadProfile.
  absl::StatusOr<HttpAnswer> Make(const std::string& job_id);

 private:
  absl::StatusOr<std::string> MakeAlone(const std::string& job_id);

  Coordinator& coordinator_;
  const PageTraceOptions options_;
  std::atomic<bool> makes_one_{false};  // Bounds the memory, and the threads that wait for servers.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_PAGE_TRACE_H_
