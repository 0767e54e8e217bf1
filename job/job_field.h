#ifndef HOOKE_JOB_JOB_FIELD_H_
#define HOOKE_JOB_JOB_FIELD_H_

// Reads and writes a key's value in a JobSpec, by the name of the key's field. Pure.

#include "job/job_keys.h"
#include "proto/job.pb.h"

namespace hooke {

// Whether the job sets the key: the key's field is not 0, or it is an `optional` field that is present. A key that
// allows 0 and has another default is an `optional` field.
bool IsGiven(const JobKey& key, const v1::JobSpec& job);

// Writes a value into the key's field, unless the field is a message (IsMessage). `value` must have passed the check of
// the same key (CheckKeyValue).
void SetField(const JobKey& key, const KeyValue& value, v1::JobSpec& job);

// Returns the job's value, allowed or not, with the text that a job file would have for it. If an enum has a number
// that is no choice, the text is "number 7". An enum at 0 reads as the preset if `unused` is set. A message has a text
// for people.
KeyValue GetField(const JobKey& key, const v1::JobSpec& job);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_FIELD_H_
