#ifndef HOOKE_SERVER_SCHEDULING_ROOM_H_
#define HOOKE_SERVER_SCHEDULING_ROOM_H_

// The workers while groups are placed, and when a group could start on one. Pure. Times are steady.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/scheduling/placement.h"

namespace hooke {

// Slots that become free at a known time. Steady.
struct KnownEnd {
  absl::Duration at;
  uint32_t ranks = 0;
};

// A worker while groups are placed. In a large cluster each placement reads tens of thousands of rooms, several times.
// So the members that it reads most are neighbours, and the times need no other memory.
struct Room {
  // The occupants of known end, in the order of their ends.
  absl::InlinedVector<KnownEnd, 2> ends;
  // The slots of the occupants in `ends`, together.
  uint64_t known = 0;
  // For all groups that keep later ones off this worker: the sum of their ranks, and the time at which the last of them
  // has started.
  uint64_t kept_ranks = 0;
  absl::Duration kept_until = -absl::InfiniteDuration();
  // The first group that keeps later ones off this worker. Null: there is none.
  const WaitingGroup* kept_for = nullptr;
  uint32_t index = 0;  // This room's index in Rooms::all(). It is valid while groups are placed.
  FreeWorker worker;
};

// The workers on which groups can start. A large cluster has many workers, of which few change between two placements.
// So the caller keeps this object, and puts in those that changed.
class Rooms {
 public:
  Rooms() = default;
  explicit Rooms(std::vector<FreeWorker> workers);
  // Not copied, because `in_order_` points into `by_name_`. Moves keep these pointers valid.
  Rooms(const Rooms&) = delete;
  Rooms& operator=(const Rooms&) = delete;
  Rooms(Rooms&&) = default;
  Rooms& operator=(Rooms&&) = default;

  // Adds the worker, or puts it in the place of the one that has its name.
  void Put(FreeWorker worker);
  // Removes the worker if there is one of that name.
  void Remove(const std::string& name);

  // In the order of their names.
  absl::Span<Room* const> all() const { return in_order_; }
  // Null: there is no worker of that name.
  Room* Find(const std::string& name) const;
  // Returns whether some workers are only for this job.
  bool HasOwn(const std::string& job_id) const { return only_jobs_.count(job_id) > 0; }
  bool any_avoided() const { return avoided_ > 0; }

 private:
  void Count(const FreeWorker& worker, bool added);

  std::map<std::string, Room> by_name_;
  std::vector<Room*> in_order_;
  std::map<std::string, size_t> only_jobs_;  // Number of workers by FreeWorker::only_job, if that is set.
  size_t avoided_ = 0;
};

// Returns whether the worker is at the group's site and may run the group's job.
bool SiteFits(const WaitingGroup& group, const FreeWorker& worker);
// Returns whether a worker with these slots and GPUs has the GPUs that a rank needs for each slot.
inline bool GpusFit(uint32_t gpus_per_rank, uint32_t slots, uint32_t gpus) {
  return uint64_t{gpus_per_rank} * slots <= gpus;
}
// Returns whether the worker could run the group if it had slots enough and were not drained.
bool Suits(const WaitingGroup& group, const FreeWorker& worker);

// Returns whether the worker gets the group only if no other one has room for it.
bool IsAvoided(const WaitingGroup& group, const FreeWorker& worker);

// Returns the sets of workers that could run the group together. `open_only`: only of workers that no group keeps.
// `good_only`: only of workers that are not IsAvoided. Drained workers are in no set.
std::vector<WorkerSet> SetsFor(const WaitingGroup& group, const Rooms& rooms, bool open_only, bool good_only);

// Returns the earliest time at which the room could have slots for so many ranks, if each occupant of unknown end ended
// now and no other group came. InfiniteDuration: the worker is too small.
absl::Duration EarliestStart(const Room& room, uint32_t ranks, absl::Duration now);

// Returns the time at which a group of so many ranks has started at the latest, after all that keep the room. Each
// occupant of unknown end may stay forever. InfiniteDuration: no such time is known.
absl::Duration LatestStart(const Room& room, uint32_t ranks, absl::Duration now);

// Returns whether LatestStart is infinite for any number of ranks.
inline bool IsKeptWhole(const Room& room) { return room.kept_ranks >= room.worker.free + room.known; }

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_ROOM_H_
