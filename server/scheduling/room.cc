#include "server/scheduling/room.h"

#include <algorithm>
#include <utility>

namespace hooke {

Rooms::Rooms(std::vector<FreeWorker> workers) {
  for (FreeWorker& worker : workers) Put(std::move(worker));
}

void Rooms::Put(FreeWorker worker) {
  Count(worker, true);
  const auto [found, is_new] = by_name_.try_emplace(worker.name);
  Room& room = found->second;
  if (is_new) {
    const auto before = [](const Room* a, const std::string& name) { return a->worker.name < name; };
    in_order_.insert(std::lower_bound(in_order_.begin(), in_order_.end(), worker.name, before), &room);
  } else {
    Count(room.worker, false);
  }
  room.worker = std::move(worker);
  room.known = 0;
  room.ends.clear();
  for (const Occupant& occupant : room.worker.occupants) {
    if (!occupant.ends_at.has_value()) continue;
    room.known += occupant.ranks;
    room.ends.push_back({*occupant.ends_at, occupant.ranks});
  }
  std::sort(room.ends.begin(), room.ends.end(), [](const KnownEnd& a, const KnownEnd& b) { return a.at < b.at; });
}

void Rooms::Remove(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return;
  Count(found->second.worker, false);
  const auto before = [](const Room* a, const std::string& other) { return a->worker.name < other; };
  in_order_.erase(std::lower_bound(in_order_.begin(), in_order_.end(), name, before));
  by_name_.erase(found);
}

Room* Rooms::Find(const std::string& name) const {
  const auto before = [](const Room* a, const std::string& other) { return a->worker.name < other; };
  const auto found = std::lower_bound(in_order_.begin(), in_order_.end(), name, before);
  return found != in_order_.end() && (*found)->worker.name == name ? *found : nullptr;
}

void Rooms::Count(const FreeWorker& worker, bool added) {
  if (worker.avoided) avoided_ += added ? 1 : -1;
  if (worker.only_job.empty()) return;
  size_t& own = only_jobs_[worker.only_job];
  own += added ? 1 : -1;
  if (own == 0) only_jobs_.erase(worker.only_job);
}

bool SiteFits(const WaitingGroup& group, const FreeWorker& worker) {
  const bool for_it = worker.only_job.empty() || worker.only_job == group.job_id;
  return for_it && (group.site.empty() || group.site == worker.site);
}

bool Suits(const WaitingGroup& group, const FreeWorker& worker) {
  return SiteFits(group, worker) && (!group.command || worker.allows_commands) &&
         GpusFit(group.gpus_per_rank, worker.slots, worker.gpus);
}

bool IsAvoided(const WaitingGroup& group, const FreeWorker& worker) {
  return worker.avoided || group.unwanted.count(worker.name) > 0;
}

std::vector<WorkerSet> SetsFor(const WaitingGroup& group, const Rooms& rooms, bool open_only, bool good_only) {
  WorkerSet suitable;
  for (const Room* room : rooms.all()) {
    if (room->worker.drained || !Suits(group, room->worker)) continue;
    if ((open_only && room->kept_for != nullptr) || (good_only && IsAvoided(group, room->worker))) continue;
    suitable.push_back(&room->worker);
  }
  return WorkersTogether(suitable);
}

absl::Duration EarliestStart(const Room& room, uint32_t ranks, absl::Duration now) {
  if (room.worker.slots < ranks) return absl::InfiniteDuration();
  uint64_t room_for = room.worker.slots - std::min<uint64_t>(room.known, room.worker.slots);
  absl::Duration at = now;
  if (room_for >= ranks) return at;
  for (const KnownEnd& end : room.ends) {
    if (room_for >= ranks) break;
    room_for += end.ranks;
    at = std::max(now, end.at);
  }
  return at;
}

absl::Duration LatestStart(const Room& room, uint32_t ranks, absl::Duration now) {
  const uint64_t needed = room.kept_ranks + ranks;
  uint64_t free = room.worker.free;
  if (free + room.known < needed) return absl::InfiniteDuration();
  absl::Duration at = std::max(now, room.kept_until);
  if (free >= needed) return at;
  for (const KnownEnd& end : room.ends) {
    if (free >= needed) break;
    free += end.ranks;
    at = std::max(at, end.at);
  }
  return at;
}

}  // namespace hooke
