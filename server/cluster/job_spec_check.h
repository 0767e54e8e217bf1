#ifndef HOOKE_SERVER_CLUSTER_JOB_SPEC_CHECK_H_
#define HOOKE_SERVER_CLUSTER_JOB_SPEC_CHECK_H_

// Checks at Submit whether a job is valid, and whether it can ever fit this cluster. Pure.

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"
#include "server/scheduling/placement.h"

namespace hooke {

// Checks that the job is valid. INVALID_ARGUMENT lists every problem that CheckJob (job/job_check.h) finds, in the form
// of RefusalOf (job/job_refusal.h).
absl::Status CheckJobSpec(const v1::JobSpec& spec);

// Checks whether the cluster has slots enough for each group of the job; slots in use count too. FAILED_PRECONDITION:
// no worker of the job's site has enough, and no workers of one site have enough together. A job that names no site may
// run at any. The message names the largest worker and the largest set of workers. OK if no worker of the site has
// joined: the job waits for one.
absl::Status CheckRanksFit(const v1::JobSpec& spec, absl::Span<const FreeWorker> workers);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_JOB_SPEC_CHECK_H_
