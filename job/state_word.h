#ifndef HOOKE_JOB_STATE_WORD_H_
#define HOOKE_JOB_STATE_WORD_H_

// The word for a job's state. Pure.

#include <string>

#include "proto/coordinator.pb.h"

namespace hooke {

// Returns the word of a state, like "running"; "unknown" for a state of a newer coordinator.
std::string JobStateText(v1::JobState state);

}  // namespace hooke

#endif  // HOOKE_JOB_STATE_WORD_H_
