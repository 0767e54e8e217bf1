#ifndef HOOKE_JOB_JOB_STATE_H_
#define HOOKE_JOB_JOB_STATE_H_

// What a job's state means, the same for whoever sends it and whoever reads it.

#include "proto/coordinator.pb.h"

namespace hooke {

// Whether the state is the job's last.
inline bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_CANCELLED;
}

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_STATE_H_
