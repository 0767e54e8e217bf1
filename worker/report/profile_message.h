#ifndef HOOKE_WORKER_REPORT_PROFILE_MESSAGE_H_
#define HOOKE_WORKER_REPORT_PROFILE_MESSAGE_H_

// A rank's profile as the message that its reporter sends.

#include <cstddef>

#include "mpi_group/profile/profile.h"
#include "proto/worker.pb.h"

namespace hooke {

// What proto/worker.proto allows of a RankProfile.
struct ProfileMessageBounds {
  size_t collectives_max = 1024;
  size_t bytes_max = 192 << 10;  // The worker adds to it.
};

// Where the profile is larger than the bounds, the oldest events go, then the collectives that took the least time.
v1::RankProfile ToMessage(const Profile& profile, const ProfileMessageBounds& bounds = {});

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_PROFILE_MESSAGE_H_
