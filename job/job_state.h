#ifndef HOOKE_JOB_JOB_STATE_H_
#define HOOKE_JOB_JOB_STATE_H_

// The meaning of a job's state, for senders and readers alike.

#include "proto/coordinator.pb.h"

namespace hooke {

// True if no other state can follow.
inline bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_CANCELLED;
}

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_STATE_H_
