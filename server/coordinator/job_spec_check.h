#ifndef HOOKE_SERVER_COORDINATOR_JOB_SPEC_CHECK_H_
#define HOOKE_SERVER_COORDINATOR_JOB_SPEC_CHECK_H_

// May this job be taken? The ranges are those that proto/job.proto states. Pure. Used by ClusterState at Submit.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace hooke {

// INVALID_ARGUMENT naming the key as the job file spells it, its value and what is allowed.
absl::Status CheckJobSpec(const v1::JobSpec& spec);

struct WorkerRoom {
  std::string name;
  std::string site;
  uint32_t slots = 0;  // Free or not.
};

// FAILED_PRECONDITION when workers of the job's site (any site where it names none) have joined, but none is large
// enough for one group; names the largest site and worker. OK while none has joined: the job waits for them.
absl::Status CheckRanksFit(const v1::JobSpec& spec, absl::Span<const WorkerRoom> workers);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_JOB_SPEC_CHECK_H_
