#include "server/coordinator/placement.h"

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

struct Room {
  FreeWorker worker;
  std::string kept_for;  // The group that waits for room here; empty: open to all.
};

std::string Count(uint64_t n, const char* thing) { return absl::StrCat(n, " ", thing, n == 1 ? "" : "s"); }

bool SiteFits(const WaitingGroup& group, const Room& room) {
  return group.site.empty() || group.site == room.worker.site;
}

// Whether the worker could run the group if it had slots enough.
bool Suits(const WaitingGroup& group, const Room& room) {
  return SiteFits(group, room) && (!group.command || room.worker.allows_commands);
}

Room* BestFit(const WaitingGroup& group, std::vector<Room>& rooms) {
  Room* best = nullptr;
  for (Room& room : rooms) {
    if (!Suits(group, room) || !room.kept_for.empty() || room.worker.free < group.ranks) continue;
    const bool better = best == nullptr || room.worker.free < best->worker.free ||
                        (room.worker.free == best->worker.free && room.worker.name < best->worker.name);
    if (better) best = &room;
  }
  return best;
}

std::string WhyNot(const WaitingGroup& group, const std::vector<Room>& rooms) {
  if (rooms.empty()) return "no worker has joined";
  const Room* roomiest = nullptr;
  const Room* kept = nullptr;
  bool at_site = false;
  for (const Room& room : rooms) {
    at_site = at_site || SiteFits(group, room);
    if (!Suits(group, room)) continue;
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
                      roomiest->worker.site, " has ", Count(roomiest->worker.free, "free slot"));
}

}  // namespace

std::vector<Placement> PlaceGroups(absl::Span<const WaitingGroup> queue, absl::Span<const FreeWorker> workers) {
  std::vector<Room> rooms;
  for (const FreeWorker& worker : workers) rooms.push_back({worker, ""});

  std::vector<Placement> placements;
  for (const WaitingGroup& group : queue) {
    Room* room = BestFit(group, rooms);
    if (room != nullptr) {
      // Also for a group that is not due: nobody else gets the slots for its next try.
      room->worker.free -= group.ranks;
      if (group.due) {
        placements.push_back({room->worker.name, room->worker.site,
                              absl::StrCat("placed on worker ", room->worker.name, " at site ", room->worker.site)});
      } else {
        placements.push_back({"", "", group.wait_why});
      }
      continue;
    }
    placements.push_back({"", "", group.due ? WhyNot(group, rooms) : group.wait_why});
    for (Room& other : rooms) {
      const bool could = Suits(group, other) && other.worker.slots >= group.ranks;
      if (could && other.kept_for.empty()) other.kept_for = absl::StrCat("group ", group.group, " of ", group.job_id);
    }
  }
  return placements;
}

}  // namespace hooke
