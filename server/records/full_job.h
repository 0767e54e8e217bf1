#ifndef HOOKE_SERVER_RECORDS_FULL_JOB_H_
#define HOOKE_SERVER_RECORDS_FULL_JOB_H_

// For tests: a job record in which each field has a value of its own.

#include <cstdint>
#include <string>

#include "server/records/records.h"

namespace hooke {

// Returns a job of three groups, of which the second has two parts.
JobRecord FullJob(uint64_t number);

// Returns all fields of the job as text, so that a test can compare two jobs.
std::string TextOf(const JobRecord& job);

}  // namespace hooke

#endif  // HOOKE_SERVER_RECORDS_FULL_JOB_H_
