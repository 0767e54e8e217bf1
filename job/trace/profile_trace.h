#ifndef HOOKE_JOB_TRACE_PROFILE_TRACE_H_
#define HOOKE_JOB_TRACE_PROFILE_TRACE_H_

// The last events of a job's ranks, the starts of its groups, and the exchanges at its servers, as a trace for Chrome's
// trace viewer and Perfetto, on one clock (common_clock.h). Each rank is a process, with a thread for its phases and
// one for each of its Group objects. Each server is one, too (server_trace.h). Pure. Values from ranks and servers are
// not trusted. The main header of the folder.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "job/trace/common_clock.h"
#include "proto/coordinator.pb.h"

namespace hooke {

struct Trace {
  std::string json;
  size_t events = 0;     // Of ranks, without the spans of starts.
  uint32_t starts = 0;   // Starts of groups. 0: none is known, or the only clock is not the coordinator's.
  size_t exchanges = 0;  // Exchanges at servers while the ranks' events happened.
  uint32_t ranks = 0;
  uint32_t machines = 0;
  uint32_t ranks_left_out = 0;  // Ranks on machines whose clock offset is unknown.
  // Bound on the clocks' error: times on two machines may be wrong by this much against each other. 0 with one machine.
  int64_t error_ns = 0;
  std::vector<std::string> notes = {};  // What the trace lacks of the servers, and why: a sentence each.
};

// Makes the trace. FAILED_PRECONDITION if there are neither events nor starts.
absl::StatusOr<Trace> MakeTrace(absl::string_view job_id, absl::Span<const v1::ReadProfileResponse> ranks,
                                const v1::ReadStartsResponse& starts, absl::Span<const ExchangesOfServer> servers = {});

}  // namespace hooke

#endif  // HOOKE_JOB_TRACE_PROFILE_TRACE_H_
