#ifndef HOOKE_SERVER_SCHEDULING_PREEMPTION_H_
#define HOOKE_SERVER_SCHEDULING_PREEMPTION_H_

// Which running groups make room for waiting groups of higher priority? Pure.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/scheduling/placement.h"

namespace hooke {

// A waiting group for which there is no room.
struct HinderedGroup {
  WaitingGroup group;
  uint32_t priority = 0;
};

// A group that takes slots.
struct RunningGroup {
  uint64_t job = 0;  // The job's number.
  uint32_t priority = 0;
  bool preemptible = false;
  bool leaving = false;  // It was told to leave already, so its slots become free soon.
  std::vector<PlacedPart> parts = {};
};

// A group that is to leave, and for whom. Both are indexes.
struct Eviction {
  size_t running = 0;
  size_t waiting = 0;
};

// Decides which groups leave. `waiting` is in the order of the queue. `workers` have the free slots that are left;
// slots that leaving groups take count as free. Only preemptible groups of lower priority make room, and only if that
// gives the waiting group all the room that it needs: on one worker, or on several of a site if no worker is large
// enough. Of the workers that could get enough room, it takes those whose groups have the lowest priority. There the
// groups of the lowest priority leave, of those the ones that take the most slots, then those of the newest job. No
// group leaves that need not.
std::vector<Eviction> ChooseEvictions(absl::Span<const HinderedGroup> waiting, absl::Span<const FreeWorker> workers,
                                      absl::Span<const RunningGroup> running);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_PREEMPTION_H_
