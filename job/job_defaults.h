#ifndef HOOKE_JOB_JOB_DEFAULTS_H_
#define HOOKE_JOB_JOB_DEFAULTS_H_

// The defaults of a job, so that a short job means the same whoever sends it: a job file, a client in any language, or
// a start file written by hand. Pure.

#include "proto/job.pb.h"

namespace hooke {

// The job with the default of each key that it does not set (IsGiven, job_field.h). A key without a default stays as it
// is: CheckJob (job_check.h) refuses the job if it needs that key. Filling in twice changes nothing more.
v1::JobSpec FillDefaults(v1::JobSpec job);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_DEFAULTS_H_
