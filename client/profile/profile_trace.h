#ifndef HOOKE_CLIENT_PROFILE_PROFILE_TRACE_H_
#define HOOKE_CLIENT_PROFILE_PROFILE_TRACE_H_

// The last events of a job's ranks in the format of Chrome's trace viewer and Perfetto, on one clock: a process for
// each rank, in it a thread for its phases and one for each of its group objects. Pure. What ranks sent is not trusted.
//
// Ranks of one machine share its clock. Machines are put on the coordinator's clock by the offset that their workers
// measured; the trace says how far two machines may be apart.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/coordinator.pb.h"

namespace hooke {

struct Trace {
  std::string json;
  size_t events = 0;
  uint32_t ranks = 0;
  uint32_t machines = 0;
  uint32_t ranks_left_out = 0;  // Of machines whose clock is not known.
  int64_t error_ns = 0;  // Events of two machines are at most so far off one another; 0 where there is one machine.
};

// FAILED_PRECONDITION: there are no events.
absl::StatusOr<Trace> MakeTrace(absl::string_view job_id, absl::Span<const v1::ReadProfileResponse> ranks);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROFILE_PROFILE_TRACE_H_
