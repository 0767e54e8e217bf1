#ifndef HOOKE_JOB_JOB_FIELD_H_
#define HOOKE_JOB_JOB_FIELD_H_

// A key's value in a JobSpec: written and read by the name of the key's field. Pure.

#include "job/job_keys.h"
#include "proto/job.pb.h"

namespace hooke {

// `value` is one that ParseKeyValue gave for the key.
void SetField(const JobKey& key, const KeyValue& value, v1::JobSpec& job);

// The value that the job has, allowed or not, with the text that a job file would have for it. An enum's number that is
// no choice is "number 7"; one that a job may leave out (JobKey::unused) is the key's preset.
KeyValue GetField(const JobKey& key, const v1::JobSpec& job);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_FIELD_H_
