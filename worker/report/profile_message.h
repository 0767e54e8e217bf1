#ifndef HOOKE_WORKER_REPORT_PROFILE_MESSAGE_H_
#define HOOKE_WORKER_REPORT_PROFILE_MESSAGE_H_

// Turns a rank's profile into the message that its reporter sends.

#include <cstddef>

#include "mpi_group/profile/profile.h"
#include "proto/worker.pb.h"

namespace hooke {

// Limits for a RankProfile. They are within those of proto/worker.proto.
struct ProfileMessageBounds {
  size_t collectives_max = 1024;
  size_t bytes_max = 192 << 10;  // Less than the limit in proto/worker.proto, because the worker adds to the message.
};

// Events take at most a third of `bytes_max`; the oldest ones are left out. Then the collectives that took the least
// time are left out, until the rest is within the bounds.
v1::RankProfile ToMessage(const Profile& profile, const ProfileMessageBounds& bounds = {});

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_PROFILE_MESSAGE_H_
