#ifndef HOOKE_CLIENT_PROFILE_PROFILE_TRACE_H_
#define HOOKE_CLIENT_PROFILE_PROFILE_TRACE_H_

// The last events of a job's ranks, and the starts of its groups, as a trace for Chrome's trace viewer and Perfetto, on
// one clock. Each rank is a process, with a thread for its phases and one for each of its Group objects. Pure. Values
// from ranks are not trusted.
//
// Ranks of one machine share its clock. The offsets that their workers measured put machines on the coordinator's
// clock. The trace says how far two machines may be apart.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/coordinator.pb.h"

namespace hooke {

struct Trace {
  std::string json;
  size_t events = 0;    // Of ranks, without the spans of starts.
  uint32_t starts = 0;  // Starts of groups. 0: none is known, or the only clock is not the coordinator's.
  uint32_t ranks = 0;
  uint32_t machines = 0;
  uint32_t ranks_left_out = 0;  // Ranks on machines whose clock offset is unknown.
  // Bound on the clocks' error: times on two machines may be wrong by this much against each other. 0 with one machine.
  int64_t error_ns = 0;
};

// Makes the trace. FAILED_PRECONDITION if there are neither events nor starts.
absl::StatusOr<Trace> MakeTrace(absl::string_view job_id, absl::Span<const v1::ReadProfileResponse> ranks,
                                const v1::ReadStartsResponse& starts);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROFILE_PROFILE_TRACE_H_
