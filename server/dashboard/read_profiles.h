#ifndef HOOKE_SERVER_DASHBOARD_READ_PROFILES_H_
#define HOOKE_SERVER_DASHBOARD_READ_PROFILES_H_

// Reads a job's profiles for the web page, up to a bound of bytes.

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"
#include "server/coordinator/coordinator.h"

namespace hooke {

// What a page may read of a job's profiles at once.
struct ProfileBound {
  size_t bytes_max = 0;
  std::string what;     // What is made of them, for the message: "the trace".
  std::string instead;  // The command to use if they are larger.
};

// Returns the profiles of a job's ranks, at least one unless they were removed meanwhile. NOT_FOUND: no such job.
// FAILED_PRECONDITION: it has none. RESOURCE_EXHAUSTED: they have more bytes than the bound. Other errors are those of
// Coordinator::ReadProfile.
absl::StatusOr<std::vector<v1::ReadProfileResponse>> ReadProfiles(Coordinator& coordinator, const std::string& job_id,
                                                                  const ProfileBound& bound);

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_READ_PROFILES_H_
