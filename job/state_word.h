#ifndef HOOKE_JOB_STATE_WORD_H_
#define HOOKE_JOB_STATE_WORD_H_

// The words for the states of jobs and groups. Pure.

#include <string>

#include "proto/coordinator.pb.h"

namespace hooke {

// Returns the word of a state, like "running"; "unknown" for a state of a newer coordinator.
std::string JobStateText(v1::JobState state);
std::string GroupStateText(v1::GroupState state);

}  // namespace hooke

#endif  // HOOKE_JOB_STATE_WORD_H_
