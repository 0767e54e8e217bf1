#ifndef HOOKE_SERVER_COORDINATOR_PROFILE_CHECK_H_
#define HOOKE_SERVER_COORDINATOR_PROFILE_CHECK_H_

// What the coordinator takes of the profiles that workers pass on. Pure.

#include "absl/status/status.h"
#include "proto/worker.pb.h"

namespace hooke {

// INVALID_ARGUMENT naming the field that proto/worker.proto does not allow so.
absl::Status CheckProfile(const v1::RankProfile& profile);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_PROFILE_CHECK_H_
