#include "server/scheduling/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/scheduling/queue_text.h"
#include "server/scheduling/room.h"

namespace hooke {
namespace {

// Takes the worker with the fewest free slots that are enough. Those that are avoided count only if `avoided_too`.
Room* BestFit(const WaitingGroup& group, std::vector<Room>& rooms, bool avoided_too) {
  Room* best = nullptr;
  for (Room& room : rooms) {
    if (room.worker.free < group.ranks || !room.kept_for.empty() || room.worker.drained) continue;
    if (!Suits(group, room.worker) || (IsAvoided(group, room.worker) && !avoided_too)) continue;
    const auto order = [](const Room& of) { return std::tie(of.worker.free, of.worker.name); };
    if (best == nullptr || order(room) < order(*best)) best = &room;
  }
  return best;
}

// Returns the fewest workers of the set that have room for all ranks together. Empty if even all of them have too few
// slots.
WorkerSet Fewest(uint32_t ranks, WorkerSet set) {
  std::sort(set.begin(), set.end(), [](const FreeWorker* a, const FreeWorker* b) {
    return std::make_tuple(b->free, a->name) < std::make_tuple(a->free, b->name);
  });
  WorkerSet chosen;
  uint64_t room = 0;
  for (size_t i = 0; i < set.size() && room < ranks; ++i) {
    if (set[i]->free == 0) break;
    chosen.push_back(set[i]);
    room += set[i]->free;
  }
  return room >= ranks ? chosen : WorkerSet();
}

// Spreads the ranks over the workers. These are in descending order of free slots and have room for all ranks together.
std::vector<PlacedPart> Spread(uint32_t ranks, const WorkerSet& workers) {
  std::vector<PlacedPart> parts(workers.size());
  uint32_t left = ranks;
  for (size_t i = workers.size(); i-- > 0;) {
    const auto share = static_cast<uint32_t>(left / (i + 1));
    parts[i] = {workers[i]->name, std::min(workers[i]->free, share)};
    left -= parts[i].ranks;
  }
  return parts;
}

std::vector<PlacedPart> PlaceTogether(const WaitingGroup& group, const std::vector<Room>& rooms, bool avoided_too) {
  // In a full cluster this spares the making of sets of thousands of workers.
  uint64_t free = 0;
  for (const Room& room : rooms) {
    if (room.kept_for.empty() && !room.worker.drained && Suits(group, room.worker)) free += room.worker.free;
  }
  if (free < group.ranks) return {};
  WorkerSet best;
  for (const WorkerSet& set : SetsFor(group, rooms, /*open_only=*/true, /*good_only=*/!avoided_too)) {
    WorkerSet chosen = Fewest(group.ranks, set);
    if (!chosen.empty() && (best.empty() || chosen.size() < best.size())) best = std::move(chosen);
  }
  return best.empty() ? std::vector<PlacedPart>() : Spread(group.ranks, best);
}

bool AnyAvoided(const WaitingGroup& group, const std::vector<Room>& rooms) {
  return std::any_of(rooms.begin(), rooms.end(), [&](const Room& room) { return IsAvoided(group, room.worker); });
}

std::vector<PlacedPart> PartsFor(const WaitingGroup& group, std::vector<Room>& rooms) {
  for (const bool avoided_too : {false, true}) {
    if (avoided_too && !AnyAvoided(group, rooms)) break;
    if (const Room* room = BestFit(group, rooms, avoided_too); room != nullptr) {
      return {{room->worker.name, group.ranks}};
    }
    std::vector<PlacedPart> parts = PlaceTogether(group, rooms, avoided_too);
    if (!parts.empty()) return parts;
  }
  return {};
}

// The rooms by their workers' names. A group may be on thousands of workers.
using RoomsByName = absl::flat_hash_map<absl::string_view, Room*>;

RoomsByName ByName(std::vector<Room>& rooms) {
  RoomsByName by_name;
  for (Room& room : rooms) by_name[room.worker.name] = &room;
  return by_name;
}

Placement Place(const WaitingGroup& group, std::vector<Room>& rooms, const RoomsByName& by_name) {
  Placement placement;
  placement.parts = PartsFor(group, rooms);
  if (placement.parts.empty()) return placement;
  // A group that is not due takes its slots too, so that no other group gets the slots for its next try.
  for (const PlacedPart& part : placement.parts) by_name.at(part.worker)->worker.free -= part.ranks;
  placement.site = by_name.at(placement.parts[0].worker)->worker.site;
  const auto name = [](std::string* text, const PlacedPart& part) { absl::StrAppend(text, part.worker); };
  placement.reason = absl::StrCat("placed on worker", placement.parts.size() == 1 ? " " : "s ",
                                  absl::StrJoin(placement.parts, " and ", name), " at site ", placement.site);
  if (!group.due) return {{}, "", group.wait_why};
  return placement;
}

// Keeps later groups off a room. The group has started at `latest` at the latest.
void KeepRoom(const WaitingGroup& group, absl::Duration latest, Room& room) {
  if (room.kept_for.empty()) room.kept_for = absl::StrCat("group ", group.group, " of ", group.job_id);
  room.kept_ranks += group.ranks;
  room.kept_until = std::max(room.kept_until, latest);
}

// Keeps later groups off the workers for which this one waits. Returns when it has started at the latest.
absl::Duration Keep(const WaitingGroup& group, std::vector<Room>& rooms, const RoomsByName& by_name) {
  const auto is_large = [&group](const Room& room) {
    return Suits(group, room.worker) && !room.worker.drained && room.worker.slots >= group.ranks;
  };
  absl::Duration latest = absl::InfiniteDuration();
  bool any = false;
  for (const Room& room : rooms) {
    if (!is_large(room)) continue;
    any = true;
    latest = std::min(latest, LatestStart(room, group.ranks));
  }
  for (Room& room : rooms) {
    if (is_large(room) && EarliestStart(room, group.ranks) <= latest) KeepRoom(group, latest, room);
  }
  if (any) return latest;
  for (const WorkerSet& set : SetsFor(group, rooms, /*open_only=*/false, /*good_only=*/false)) {
    if (SumOf(set, &FreeWorker::slots) < group.ranks) continue;
    for (const FreeWorker* worker : set) KeepRoom(group, latest, *by_name.at(worker->name));
  }
  return latest;
}

// The answer for all groups with the same needs, once one of them could not be placed. Rooms only fill up while groups
// are placed, so the others cannot be placed either. A queue often has thousands of groups of few kinds.
struct Refusal {
  absl::Duration latest;  // When the last one has started at the latest.
  size_t refused = 0;
  std::string reason;  // Of the last one.
  size_t placed = 0;   // Number of groups that were placed before `reason` was made.
};
// The needs: ranks, site, whether the group is a command, and the job if some workers are only for it.
using Needs = std::tuple<uint32_t, std::string, bool, std::string>;
using Refusals = std::map<Needs, Refusal>;

// Says why the group waits, and keeps workers for it.
std::string Refuse(const WaitingGroup& group, std::vector<Room>& rooms, const RoomsByName& by_name, Refusal& refusal,
                   size_t placed, absl::Time now) {
  // The reasons of the first two differ: before the second one there is a first one.
  if (refusal.refused < 2 || refusal.placed != placed) refusal.reason = WhyItWaits(group, rooms, now);
  // If nobody knows when the last one starts, the workers that are large enough are kept already, for good.
  const bool keeps_more = refusal.refused == 0 || refusal.latest != absl::InfiniteDuration();
  if (keeps_more) refusal.latest = Keep(group, rooms, by_name);
  ++refusal.refused;
  refusal.placed = placed;
  return refusal.reason;
}

// Returns why the group must not start because of its owner's quota. Empty: it may.
std::string OverQuota(const WaitingGroup& group, Quotas& quotas, std::set<std::string>& closed) {
  const auto quota = quotas.find(group.owner);
  if (quota == quotas.end()) return "";
  const auto& [used, limit] = quota->second;
  if (closed.count(group.owner) == 0 && used + group.ranks <= limit) return "";
  if (group.ranks <= limit) closed.insert(group.owner);
  return QuotaText(group, used, limit);
}

}  // namespace

std::vector<WorkerSet> WorkersTogether(const WorkerSet& workers) {
  using SiteAndLibrary = std::pair<std::string, std::string>;
  using ByAddress = std::map<std::string, const FreeWorker*>;
  std::map<SiteAndLibrary, ByAddress> sets;
  const auto size = [](const FreeWorker* worker) { return std::make_tuple(worker->free, worker->slots); };
  for (const FreeWorker* worker : workers) {
    if (worker->address.empty()) continue;
    const FreeWorker*& at = sets[{worker->site, worker->mpi}][worker->address];
    if (at == nullptr || size(worker) > size(at)) at = worker;
  }
  std::vector<WorkerSet> lists;
  for (const auto& [key, by_address] : sets) {
    WorkerSet& list = lists.emplace_back();
    for (const auto& [address, worker] : by_address) list.push_back(worker);
  }
  return lists;
}

uint64_t SumOf(const WorkerSet& workers, uint32_t FreeWorker::*slots) {
  return std::accumulate(workers.begin(), workers.end(), uint64_t{0},
                         [slots](uint64_t sum, const FreeWorker* worker) { return sum + worker->*slots; });
}

std::vector<Placement> PlaceGroups(absl::Span<const WaitingGroup> queue, std::vector<FreeWorker> workers,
                                   absl::Time now, Quotas quotas) {
  std::vector<Room> rooms;
  rooms.reserve(workers.size());
  for (FreeWorker& worker : workers) {
    std::vector<Occupant>& occupants = rooms.emplace_back(Room{std::move(worker)}).worker.occupants;
    std::stable_sort(occupants.begin(), occupants.end(), [](const Occupant& a, const Occupant& b) {
      return a.ends_in.value_or(absl::InfiniteDuration()) < b.ends_in.value_or(absl::InfiniteDuration());
    });
  }
  const RoomsByName by_name = ByName(rooms);
  std::set<std::string> with_own_workers;
  for (const Room& room : rooms) with_own_workers.insert(room.worker.only_job);

  std::vector<Placement> placements;
  Refusals refusals;
  size_t placed = 0;
  std::set<std::string> closed;  // Owners of whom a group waits because of their quota.
  for (const WaitingGroup& group : queue) {
    Placement& placement = placements.emplace_back();
    if (placement.reason = OverQuota(group, quotas, closed); !placement.reason.empty()) continue;
    const bool has_own = with_own_workers.count(group.job_id) > 0;
    const Needs needs = {group.ranks, group.site, group.command, has_own ? group.job_id : ""};
    if (refusals.count(needs) == 0) placement = Place(group, rooms, by_name);
    if (!placement.reason.empty()) {
      ++placed;
      if (const auto quota = quotas.find(group.owner); quota != quotas.end()) quota->second.used += group.ranks;
      continue;
    }
    placement.lacks_slots = group.due;
    placement.reason = Refuse(group, rooms, by_name, refusals[needs], placed, now);
    if (!group.due) placement.reason = group.wait_why;
  }
  return placements;
}

}  // namespace hooke
