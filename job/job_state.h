#ifndef HOOKE_JOB_JOB_STATE_H_
#define HOOKE_JOB_JOB_STATE_H_

// Tells which states of a job are final, and in which none of its groups runs.

#include "proto/coordinator.pb.h"

namespace hooke {

// True for a state after which no other follows.
inline bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_CANCELLED;
}

// True for a state in which no group of the job runs, and later one may.
inline bool HasNoGroup(v1::JobState state) { return state == v1::JOB_STATE_QUEUED || state == v1::JOB_STATE_HELD; }

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_STATE_H_
