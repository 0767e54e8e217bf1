#ifndef HOOKE_SERVER_CLUSTER_PROFILE_CHECK_H_
#define HOOKE_SERVER_CLUSTER_PROFILE_CHECK_H_

// Checks a rank's profile before the coordinator stores it. Pure.

#include "absl/status/status.h"
#include "proto/worker.pb.h"

namespace hooke {

// Checks the profile's fields. INVALID_ARGUMENT: the message names the first field that breaks a rule of
// proto/worker.proto.
absl::Status CheckProfile(const v1::RankProfile& profile);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_PROFILE_CHECK_H_
