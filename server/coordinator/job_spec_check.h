#ifndef HOOKE_SERVER_COORDINATOR_JOB_SPEC_CHECK_H_
#define HOOKE_SERVER_COORDINATOR_JOB_SPEC_CHECK_H_

// Checks at Submit whether a job is valid, and whether it can ever fit this cluster. Pure.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace hooke {

// INVALID_ARGUMENT lists every problem that CheckJob (job/job_check.h) finds, in the form of RefusalOf
// (job/job_refusal.h).
absl::Status CheckJobSpec(const v1::JobSpec& spec);

struct WorkerRoom {
  std::string name;
  std::string site;
  uint32_t slots = 0;  // All slots, free or not.
};

// FAILED_PRECONDITION: no worker of the job's site has slots enough for one group. A job that names no site may run at
// any. The message names the largest site and worker. OK if no worker of the site has joined: the job waits for one.
absl::Status CheckRanksFit(const v1::JobSpec& spec, absl::Span<const WorkerRoom> workers);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_JOB_SPEC_CHECK_H_
