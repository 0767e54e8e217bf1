#include "server/scheduling/room.h"

#include <algorithm>

namespace hooke {

bool SiteFits(const WaitingGroup& group, const FreeWorker& worker) {
  const bool for_it = worker.only_job.empty() || worker.only_job == group.job_id;
  return for_it && (group.site.empty() || group.site == worker.site);
}

bool Suits(const WaitingGroup& group, const FreeWorker& worker) {
  return SiteFits(group, worker) && (!group.command || worker.allows_commands);
}

bool IsAvoided(const WaitingGroup& group, const FreeWorker& worker) {
  return worker.avoided || group.unwanted.count(worker.name) > 0;
}

std::vector<WorkerSet> SetsFor(const WaitingGroup& group, const std::vector<Room>& rooms, bool open_only,
                               bool good_only) {
  WorkerSet suitable;
  for (const Room& room : rooms) {
    if (!Suits(group, room.worker) || room.worker.drained) continue;
    if ((open_only && !room.kept_for.empty()) || (good_only && IsAvoided(group, room.worker))) continue;
    suitable.push_back(&room.worker);
  }
  return WorkersTogether(suitable);
}

absl::Duration EarliestStart(const Room& room, uint32_t ranks) {
  if (room.worker.slots < ranks) return absl::InfiniteDuration();
  uint64_t later = 0;  // Slots that are not free before a known time.
  for (const Occupant& occupant : room.worker.occupants) later += occupant.ends_in.has_value() ? occupant.ranks : 0;
  uint64_t room_for = room.worker.slots - std::min<uint64_t>(later, room.worker.slots);
  absl::Duration at = absl::ZeroDuration();
  for (const Occupant& occupant : room.worker.occupants) {
    if (room_for >= ranks || !occupant.ends_in.has_value()) break;
    room_for += occupant.ranks;
    at = *occupant.ends_in;
  }
  return at;
}

absl::Duration LatestStart(const Room& room, uint32_t ranks) {
  const uint64_t needed = room.kept_ranks + ranks;
  uint64_t free = room.worker.free;
  absl::Duration at = absl::ZeroDuration();
  for (const Occupant& occupant : room.worker.occupants) {
    if (free >= needed || !occupant.ends_in.has_value()) break;
    free += occupant.ranks;
    at = *occupant.ends_in;
  }
  return free >= needed ? std::max(at, room.kept_until) : absl::InfiniteDuration();
}

}  // namespace hooke
