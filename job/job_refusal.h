#ifndef HOOKE_JOB_JOB_REFUSAL_H_
#define HOOKE_JOB_JOB_REFUSAL_H_

// The coordinator's answer to a job that it does not take, as it travels: proto/coordinator.proto has its form. Pure.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "job/job_check.h"

namespace hooke {

// More problems than these are counted, not listed: nobody reads them, and a gRPC status holds little.
constexpr size_t kProblemsListed = 10;

// OK for no problems. Else `code`, the first problem as the message, and all that are listed as JobProblems in the
// payload kStatusDetails (wire/grpc_status.h).
absl::Status RefusalOf(absl::Span<const JobProblem> problems,
                       absl::StatusCode code = absl::StatusCode::kInvalidArgument);

// The problems of a refusal; none where the status is another one, or its payload cannot be read. What they say is
// escaped, and bounded as RefusalOf bounds it, whoever sent it.
struct Refusal {
  std::vector<JobProblem> problems;  // `about` is empty.
  uint64_t left_out = 0;
};
Refusal ReadRefusal(const absl::Status& status);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_REFUSAL_H_
