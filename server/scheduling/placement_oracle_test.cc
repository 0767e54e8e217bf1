// PlaceGroups against a plain version of itself, which looks at all workers for each group, on clusters made by chance.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clocks/instant.h"
#include "server/scheduling/placement.h"
#include "server/scheduling/room.h"

namespace hooke {
namespace {

constexpr Instant kNow = {absl::UnixEpoch(), absl::Seconds(100)};

// Places the groups of one queue, in order. It marks in `rooms` the slots that each group takes or keeps, so each pass
// needs new rooms.
class PlainPlacer {
 public:
  explicit PlainPlacer(Rooms& rooms) : rooms_(rooms) {}

  std::vector<PlacedPart> Place(const WaitingGroup& group) {
    std::vector<PlacedPart> parts;
    for (const bool avoided_too : {false, true}) {
      if (parts.empty()) parts = OnOne(group, avoided_too);
      if (parts.empty()) parts = OnSeveral(group, avoided_too);
    }
    for (const PlacedPart& part : parts) rooms_.Find(part.worker)->worker.free -= part.ranks;
    if (parts.empty()) Keep(group);
    return parts;
  }

 private:
  std::vector<PlacedPart> OnOne(const WaitingGroup& group, bool avoided_too) const {
    const Room* best = nullptr;
    for (const Room* room : rooms_.all()) {
      if (room->worker.free < group.ranks || room->kept_for != nullptr || room->worker.drained) continue;
      if (!Suits(group, room->worker) || (IsAvoided(group, room->worker) && !avoided_too)) continue;
      if (best == nullptr || room->worker.free < best->worker.free) best = room;
    }
    if (best == nullptr) return {};
    return {{best->worker.name, group.ranks}};
  }

  std::vector<PlacedPart> OnSeveral(const WaitingGroup& group, bool avoided_too) const {
    WorkerSet best;
    for (WorkerSet set : SetsFor(group, rooms_, /*open_only=*/true, /*good_only=*/!avoided_too)) {
      std::sort(set.begin(), set.end(), [](const FreeWorker* a, const FreeWorker* b) {
        return std::make_pair(b->free, a->name) < std::make_pair(a->free, b->name);
      });
      size_t count = 0;
      uint64_t room = 0;
      while (count < set.size() && room < group.ranks) room += set[count++]->free;
      if (room < group.ranks || (!best.empty() && best.size() <= count)) continue;
      set.resize(count);
      best = set;
    }
    std::vector<PlacedPart> parts(best.size());
    uint32_t left = group.ranks;
    for (size_t i = best.size(); i-- > 0;) {
      parts[i] = {best[i]->name, std::min(best[i]->free, static_cast<uint32_t>(left / (i + 1)))};
      left -= parts[i].ranks;
    }
    return parts;
  }

  void Keep(const WaitingGroup& group) {
    const auto is_large = [&group](const Room& room) {
      return Suits(group, room.worker) && !room.worker.drained && room.worker.slots >= group.ranks;
    };
    const auto keep = [&group](absl::Duration latest, Room& room) {
      if (room.kept_for == nullptr) room.kept_for = &group;
      room.kept_ranks += group.ranks;
      room.kept_until = std::max(room.kept_until, latest);
    };
    absl::Duration latest = absl::InfiniteDuration();
    bool any = false;
    for (const Room* room : rooms_.all()) {
      if (!is_large(*room)) continue;
      any = true;
      latest = std::min(latest, LatestStart(*room, group.ranks, kNow.steady));
    }
    for (Room* room : rooms_.all()) {
      if (is_large(*room) && EarliestStart(*room, group.ranks, kNow.steady) <= latest) keep(latest, *room);
    }
    if (any) return;
    for (const WorkerSet& set : SetsFor(group, rooms_, /*open_only=*/false, /*good_only=*/false)) {
      if (SumOf(set, &FreeWorker::slots) < group.ranks) continue;
      for (const FreeWorker* worker : set) keep(latest, *rooms_.Find(worker->name));
    }
  }

  Rooms& rooms_;
};

class Chance {
 public:
  explicit Chance(uint32_t seed) : random_(seed) {}
  uint32_t Pick(uint32_t least, uint32_t most) { return std::uniform_int_distribution<uint32_t>(least, most)(random_); }
  bool OneOf(uint32_t many) { return Pick(1, many) == 1; }

  FreeWorker Worker(const std::string& name) {
    FreeWorker worker = {name, OneOf(3) ? "cloud" : "hpc", Pick(1, 6)};
    worker.free = worker.slots;
    if (!OneOf(4)) worker.address = absl::StrCat("10.0.0.", Pick(1, 12));
    worker.mpi = OneOf(5) ? "mpich" : "openmpi";
    worker.allows_commands = OneOf(2);
    if (OneOf(4)) worker.gpus = Pick(1, 8);
    worker.drained = OneOf(8);
    worker.avoided = OneOf(8);
    if (OneOf(8)) worker.only_job = absl::StrCat("q-", Pick(1, 4));
    while (worker.free > 0 && !OneOf(4)) {
      const uint32_t ranks = Pick(1, worker.free);
      worker.occupants.push_back({"r-1", ranks, std::nullopt});
      // Some should have ended already.
      if (!OneOf(5)) worker.occupants.back().ends_at = absl::Seconds(10 * Pick(8, 14));
      worker.free -= ranks;
    }
    // If a worker runs a start that is not the group's newest, the coordinator counts all slots for this start.
    if (OneOf(15)) worker.occupants.push_back({"", worker.slots, std::nullopt});
    return worker;
  }

  std::vector<WaitingGroup> Queue(size_t workers) {
    std::vector<WaitingGroup> queue;
    for (uint32_t job = Pick(1, 5); job > 0; --job) {
      WaitingGroup group = {absl::StrCat("q-", job), 0, Pick(1, 7), OneOf(3) ? "cloud" : ""};
      group.command = OneOf(4);
      if (OneOf(6)) group.gpus_per_rank = Pick(1, 2);
      for (uint32_t count = Pick(1, 8); count > 0; --count) {
        ++group.group;
        group.due = !OneOf(6);
        group.unwanted.clear();
        if (OneOf(6)) group.unwanted.insert(absl::StrCat("w", Pick(1, static_cast<uint32_t>(workers))));
        queue.push_back(group);
      }
    }
    return queue;
  }

 private:
  std::mt19937 random_;
};

std::string TextOf(const std::vector<PlacedPart>& parts) {
  std::string text;
  for (const PlacedPart& part : parts) absl::StrAppend(&text, " ", part.worker, ":", part.ranks);
  return text;
}

std::string TextOf(const Rooms& rooms) {
  std::string text;
  for (const Room* room : rooms.all()) {
    absl::StrAppend(&text, room->worker.name, ":", room->worker.free, ":", room->kept_ranks,
                    room->kept_for == nullptr ? "" : " kept", "\n");
  }
  return text;
}

// The workers change as they do in a cluster: some at a time. The rooms are kept from one placement to the next.
TEST(PlacementOracleTest, EqualsThePlainVersion) {
  size_t placed = 0, waits = 0, apart = 0;
  for (uint32_t seed = 1; seed <= 1500; ++seed) {
    Chance chance(seed);
    const size_t workers = chance.Pick(1, 12);
    std::map<std::string, FreeWorker> present;
    Rooms rooms;
    for (int round = 0; round < 8; ++round) {
      for (size_t i = round == 0 ? workers : chance.Pick(0, 3); i > 0; --i) {
        const std::string name = absl::StrCat("w", chance.Pick(1, static_cast<uint32_t>(workers)));
        if (chance.OneOf(5)) {
          rooms.Remove(name);
          present.erase(name);
        } else {
          rooms.Put(present[name] = chance.Worker(name));
        }
      }
      std::vector<FreeWorker> anew;
      anew.reserve(present.size());
      for (const auto& [name, worker] : present) anew.push_back(worker);
      std::reverse(anew.begin(), anew.end());
      Rooms plain_rooms(anew);
      PlainPlacer plain(plain_rooms);
      const std::vector<WaitingGroup> queue = chance.Queue(workers);
      std::vector<const WaitingGroup*> groups;
      groups.reserve(queue.size());
      for (const WaitingGroup& group : queue) groups.push_back(&group);
      const std::string before = TextOf(rooms);
      const std::vector<Placement> placements = PlaceGroups(groups, rooms, kNow);
      ASSERT_EQ(TextOf(rooms), before) << "it changed the rooms";
      for (size_t i = 0; i < queue.size(); ++i) {
        const std::vector<PlacedPart> parts = plain.Place(queue[i]);
        const std::string expected = queue[i].due ? TextOf(parts) : "";
        ASSERT_EQ(TextOf(placements[i].parts), expected) << "seed " << seed << " round " << round << " group " << i;
        ASSERT_EQ(placements[i].lacks_slots, queue[i].due && parts.empty());
        placed += parts.size() == 1 ? 1 : 0;
        apart += parts.size() > 1 ? 1 : 0;
        waits += parts.empty() ? 1 : 0;
      }
    }
  }
  std::cout << placed << " groups on one worker, " << apart << " on several, " << waits << " wait\n";
  EXPECT_GT(placed, 5000u);
  EXPECT_GT(apart, 300u);
  EXPECT_GT(waits, 5000u);
}

}  // namespace
}  // namespace hooke
