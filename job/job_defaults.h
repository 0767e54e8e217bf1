#ifndef HOOKE_JOB_JOB_DEFAULTS_H_
#define HOOKE_JOB_JOB_DEFAULTS_H_

// Fills in the defaults of a job. A job that leaves keys out means the same from a job file, any client, or a
// hand-written start file. Pure.

#include "proto/job.pb.h"

namespace hooke {

// Returns the job with defaults for all keys that it does not set (IsGiven, job_field.h). A key without a default stays
// unset; CheckJob (job_check.h) refuses the job if it needs that key. A second call changes nothing more.
v1::JobSpec FillDefaults(v1::JobSpec job);

// Returns the job with these groups. An elastic job's alpha, or a bmuf job's momentum, that is the default for its
// present groups becomes the default for these.
v1::JobSpec WithGroups(v1::JobSpec job, const v1::GroupsSpec& groups);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_DEFAULTS_H_
