#ifndef HOOKE_JOB_DONE_SHARE_H_
#define HOOKE_JOB_DONE_SHARE_H_

// Says how much of a job is done. Pure.

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "proto/coordinator.pb.h"
#include "proto/worker.pb.h"

namespace hooke {

// A group that trains.
struct GroupDone {
  v1::GroupState state = v1::GROUP_STATE_WAITING;
  uint32_t incarnation = 0;                    // 0: never started.
  const v1::RankProgress* progress = nullptr;  // Null: no report of its last start is known.
};

// Returns the share of the steps of all `count` groups that are done, 0 to 1. nullopt: it is not known, because a group
// that was started has not reported yet, or not since the coordinator was started again.
std::optional<double> DoneShare(absl::Span<const GroupDone> groups, uint32_t count);

}  // namespace hooke

#endif  // HOOKE_JOB_DONE_SHARE_H_
