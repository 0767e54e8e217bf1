#ifndef HOOKE_SERVER_SCHEDULING_ROOM_H_
#define HOOKE_SERVER_SCHEDULING_ROOM_H_

// A worker while groups are placed, and when a group could start on it. Pure. Times count from now.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/scheduling/placement.h"

namespace hooke {

struct Room {
  FreeWorker worker;  // Its occupants in the order of their ends, those of unknown end last.
  // The first group that keeps later ones off this worker: "group 0 of a-1". Empty: there is none.
  std::string kept_for = {};
  // For all groups that keep later ones off this worker: the sum of their ranks, and the time at which the last of them
  // has started.
  uint64_t kept_ranks = 0;
  absl::Duration kept_until = absl::ZeroDuration();
};

// Returns whether the worker is at the group's site and may run the group's job.
bool SiteFits(const WaitingGroup& group, const FreeWorker& worker);
// Returns whether the worker could run the group if it had slots enough and were not drained.
bool Suits(const WaitingGroup& group, const FreeWorker& worker);

// Returns whether the worker gets the group only if no other one has room for it.
bool IsAvoided(const WaitingGroup& group, const FreeWorker& worker);

// Returns the sets of workers that could run the group together. `open_only`: only of workers that no group keeps.
// `good_only`: only of workers that are not IsAvoided. Drained workers are in no set.
std::vector<WorkerSet> SetsFor(const WaitingGroup& group, const std::vector<Room>& rooms, bool open_only,
                               bool good_only);

// Returns the earliest time at which the room could have slots for so many ranks, if each occupant of unknown end ended
// now and no other group came. InfiniteDuration: the worker is too small.
absl::Duration EarliestStart(const Room& room, uint32_t ranks);

// Returns the time at which a group of so many ranks has started at the latest, after all that keep the room. Each
// occupant of unknown end may stay forever. InfiniteDuration: no such time is known.
absl::Duration LatestStart(const Room& room, uint32_t ranks);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_ROOM_H_
