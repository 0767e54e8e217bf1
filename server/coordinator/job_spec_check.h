#ifndef HOOKE_SERVER_COORDINATOR_JOB_SPEC_CHECK_H_
#define HOOKE_SERVER_COORDINATOR_JOB_SPEC_CHECK_H_

// May this job be taken, as it is and in this cluster? ClusterState asks at Submit. Pure.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace hooke {

// INVALID_ARGUMENT with every problem that CheckJob (job/job_check.h) finds, as RefusalOf (job/job_refusal.h) says it.
absl::Status CheckJobSpec(const v1::JobSpec& spec);

struct WorkerRoom {
  std::string name;
  std::string site;
  uint32_t slots = 0;  // Free or not.
};

// FAILED_PRECONDITION when workers of the job's site (any site where it names none) have joined, but none is large
// enough for one group; names the largest site and worker, as RefusalOf says it. OK while none has joined: the job
// waits for them.
absl::Status CheckRanksFit(const v1::JobSpec& spec, absl::Span<const WorkerRoom> workers);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_JOB_SPEC_CHECK_H_
