#ifndef HOOKE_JOB_JOB_REFUSAL_H_
#define HOOKE_JOB_JOB_REFUSAL_H_

// The coordinator's refusal of a job, as a status that travels over gRPC; proto/coordinator.proto has the form. Pure.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "job/job_check.h"

namespace hooke {

// The maximum number of problems listed. The status gives the number of the others. Nobody reads more, and a gRPC
// status has little room.
constexpr size_t kProblemsListed = 10;

// OK if there are no problems. Otherwise a status with `code` and the first problem as its message. Its payload
// kStatusDetails (wire/grpc_status.h) has the listed problems as JobProblems.
absl::Status RefusalOf(absl::Span<const JobProblem> problems,
                       absl::StatusCode code = absl::StatusCode::kInvalidArgument);

// The problems that ReadRefusal reads from a status. There are none if the status is not a refusal or its payload
// cannot be read. Since any peer may have sent the status, texts are escaped and cut as RefusalOf cuts them.
struct Refusal {
  std::vector<JobProblem> problems;  // `about` is left empty.
  uint64_t left_out = 0;
};
Refusal ReadRefusal(const absl::Status& status);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_REFUSAL_H_
