#include "server/coordinator/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

struct Room {
  FreeWorker worker;
  std::string kept_for;  // The group that waits for room on this worker. Empty: any group may have the worker's slots.
};

std::string Count(uint64_t n, const char* thing) { return absl::StrCat(n, " ", thing, n == 1 ? "" : "s"); }

bool SiteFits(const WaitingGroup& group, const FreeWorker& worker) {
  return group.site.empty() || group.site == worker.site;
}

// Returns whether the worker could run the group if it had slots enough.
bool Suits(const WaitingGroup& group, const FreeWorker& worker) {
  return SiteFits(group, worker) && (!group.command || worker.allows_commands);
}

Room* BestFit(const WaitingGroup& group, std::vector<Room>& rooms) {
  Room* best = nullptr;
  for (Room& room : rooms) {
    if (!Suits(group, room.worker) || !room.kept_for.empty() || room.worker.free < group.ranks) continue;
    const bool better = best == nullptr || room.worker.free < best->worker.free ||
                        (room.worker.free == best->worker.free && room.worker.name < best->worker.name);
    if (better) best = &room;
  }
  return best;
}

std::vector<WorkerSet> SetsFor(const WaitingGroup& group, const std::vector<Room>& rooms, bool open_only) {
  WorkerSet suitable;
  for (const Room& room : rooms) {
    if (Suits(group, room.worker) && (!open_only || room.kept_for.empty())) suitable.push_back(&room.worker);
  }
  return WorkersTogether(suitable);
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

std::vector<PlacedPart> PlaceTogether(const WaitingGroup& group, const std::vector<Room>& rooms) {
  WorkerSet best;
  for (const WorkerSet& set : SetsFor(group, rooms, true)) {
    WorkerSet chosen = Fewest(group.ranks, set);
    if (!chosen.empty() && (best.empty() || chosen.size() < best.size())) best = std::move(chosen);
  }
  return best.empty() ? std::vector<PlacedPart>() : Spread(group.ranks, best);
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
  if (const Room* room = BestFit(group, rooms); room != nullptr) {
    placement.parts = {{room->worker.name, group.ranks}};
  } else {
    placement.parts = PlaceTogether(group, rooms);
  }
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

// Returns TogetherText of the set of workers with the most free slots. Returns "" if no set has several workers, or if
// the first worker of that set has slots for all ranks.
std::string MostTogetherText(const WaitingGroup& group, const std::vector<Room>& rooms) {
  WorkerSet best;
  for (const WorkerSet& set : SetsFor(group, rooms, false)) {
    const bool better = best.empty() || SumOf(set, &FreeWorker::free) > SumOf(best, &FreeWorker::free);
    if (set.size() > 1 && better) best = set;
  }
  if (best.empty() || group.ranks <= best.front()->slots) return "";
  return TogetherText(best, &FreeWorker::free);
}

std::string WhyNot(const WaitingGroup& group, const std::vector<Room>& rooms) {
  if (rooms.empty()) return "no worker has joined";
  const Room* roomiest = nullptr;
  const Room* kept = nullptr;
  bool at_site = false;
  for (const Room& room : rooms) {
    at_site = at_site || SiteFits(group, room.worker);
    if (!Suits(group, room.worker)) continue;
    if (!room.kept_for.empty() && room.worker.free >= group.ranks) kept = &room;
    if (roomiest == nullptr || room.worker.free > roomiest->worker.free) roomiest = &room;
  }
  if (!at_site) return absl::StrCat("no worker of site ", group.site, " has joined");
  if (roomiest == nullptr) {
    return absl::StrCat("no worker", group.site.empty() ? "" : " of site ", group.site,
                        " allows commands; start hooke-worker with --allow-commands");
  }
  if (kept != nullptr) {
    return absl::StrCat("", Count(group.ranks, "rank"), " needed, and the free slots of worker ", kept->worker.name,
                        " are kept for ", kept->kept_for);
  }
  return absl::StrCat("", Count(group.ranks, "rank"), " needed, worker ", roomiest->worker.name, " at site ",
                      roomiest->worker.site, " has ", Count(roomiest->worker.free, "free slot"),
                      MostTogetherText(group, rooms));
}

// Keeps later groups off the workers for which this one waits.
void Keep(const WaitingGroup& group, std::vector<Room>& rooms, const RoomsByName& by_name) {
  std::vector<std::string> names;
  for (const Room& room : rooms) {
    if (Suits(group, room.worker) && room.worker.slots >= group.ranks) names.push_back(room.worker.name);
  }
  if (names.empty()) {
    for (const WorkerSet& set : SetsFor(group, rooms, false)) {
      if (SumOf(set, &FreeWorker::slots) < group.ranks) continue;
      for (const FreeWorker* worker : set) names.push_back(worker->name);
    }
  }
  for (const std::string& name : names) {
    Room& room = *by_name.at(name);
    if (room.kept_for.empty()) room.kept_for = absl::StrCat("group ", group.group, " of ", group.job_id);
  }
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

std::string TogetherText(const WorkerSet& set, uint32_t FreeWorker::*slots) {
  return absl::StrCat(", and the ", set.size(), " workers that site ", set.front()->site,
                      " has for groups of several workers have ", SumOf(set, slots), " together");
}

std::vector<Placement> PlaceGroups(absl::Span<const WaitingGroup> queue, absl::Span<const FreeWorker> workers) {
  std::vector<Room> rooms;
  rooms.reserve(workers.size());
  for (const FreeWorker& worker : workers) rooms.push_back({worker, ""});
  const RoomsByName by_name = ByName(rooms);

  std::vector<Placement> placements;
  for (const WaitingGroup& group : queue) {
    Placement placement = Place(group, rooms, by_name);
    if (placement.reason.empty()) {
      placement.reason = group.due ? WhyNot(group, rooms) : group.wait_why;
      Keep(group, rooms, by_name);
    }
    placements.push_back(std::move(placement));
  }
  return placements;
}

}  // namespace hooke
