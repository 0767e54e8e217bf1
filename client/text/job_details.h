#ifndef HOOKE_CLIENT_TEXT_JOB_DETAILS_H_
#define HOOKE_CLIENT_TEXT_JOB_DETAILS_H_

// The full text about one job that `hooke jobs JOB` prints for people. Pure.

#include <string>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// Returns several lines: state, reason and times, then a table of the groups, then the peers that do not answer
// (JobSilence), then notices. `now` is the coordinator's clock, `zone` the reader's time zone.
std::string JobDetails(const v1::JobStatus& job, absl::Time now, absl::TimeZone zone);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_JOB_DETAILS_H_
