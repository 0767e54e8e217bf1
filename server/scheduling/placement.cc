#include "server/scheduling/placement.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/scheduling/queue_text.h"
#include "server/scheduling/room.h"

namespace hooke {
namespace {

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

// The needs: ranks, GPUs of each, site, whether the group is a command, and the job if some workers are only for it.
using Needs = std::tuple<uint32_t, uint32_t, std::string, bool, std::string>;

// The workers from which waiting groups of the same needs keep later groups away. A full cluster with estimates has
// tens of thousands of rooms and waiting groups. So a room is not looked at any more once it is IsKeptWhole. This takes
// only a few groups.
class KeptRooms {
 public:
  // Keeps later groups off the workers for which this one waits. Returns those workers that nobody kept before. All
  // calls have groups of the same needs.
  std::vector<Room*> Keep(const WaitingGroup& group, const Rooms& rooms, absl::Duration now);
  // Returns whether Keep must be called for the next group. It need not be if no latest start is known for the last
  // group: then all workers that are large enough are kept already.
  bool keeps_more() const { return !begun_ || latest_ != absl::InfiniteDuration(); }

 private:
  using Timed = std::pair<absl::Duration, Room*>;

  void Begin(const WaitingGroup& group, const Rooms& rooms, absl::Duration now);
  absl::Duration Latest(uint32_t ranks, absl::Duration now);

  bool begun_ = false;
  absl::Duration latest_;  // The latest time at which the last group given to Keep can start.
  // A heap with the least time on top. A time may be too early, and is then computed anew.
  std::vector<Timed> by_latest_;
  std::vector<Timed> by_earliest_;  // A heap with the least EarliestStart on top, of rooms that no group keeps yet.
  std::vector<Room*> being_kept_;   // Rooms that each further group of these needs keeps, too.
};

// The answer for all groups with the same needs, once one of them could not be placed. Rooms only fill up while groups
// are placed, so the others cannot be placed either. A queue often has thousands of groups of few kinds.
struct Refusal {
  KeptRooms kept;
  size_t refused = 0;
  std::string reason;  // Why the last refused group waits.
  size_t placed = 0;   // Number of groups that were placed before `reason` was made.
};

// Places groups, one after another. Its destructor gives the rooms their free slots back, and ends what groups keep.
class Placer {
 public:
  Placer(Rooms& rooms, Instant now);
  ~Placer();
  Placer(const Placer&) = delete;
  Placer& operator=(const Placer&) = delete;

  Placement Place(const WaitingGroup& group);
  // Number of groups that have got slots. They include those that are not due, which do not start.
  size_t placed() const { return placed_; }

 private:
  const Room* BestFit(const WaitingGroup& group, bool avoided_too) const;
  std::vector<PlacedPart> Together(const WaitingGroup& group, bool avoided_too) const;
  std::vector<PlacedPart> PartsFor(const WaitingGroup& group) const;
  Refusal& RefusalFor(const WaitingGroup& group);
  std::string Refuse(const WaitingGroup& group, Refusal& refusal);
  void Take(const PlacedPart& part);
  void Close(const std::vector<Room*>& kept);

  Rooms& rooms_;
  const Instant now_;
  // Rooms that nobody keeps, by their free slots: indexes in order. Those without free slots are in none.
  std::map<uint32_t, std::vector<uint32_t>> open_;
  uint64_t open_slots_ = 0;
  std::vector<std::pair<Room*, uint32_t>> taken_;
  std::map<Needs, Refusal> refusals_;
  // The group that was placed or refused last. `of_last_` is the entry of `refusals_` for its needs.
  const WaitingGroup* last_ = nullptr;
  Refusal* of_last_ = nullptr;
  size_t placed_ = 0;
  bool any_kept_ = false;
};

void KeptRooms::Begin(const WaitingGroup& group, const Rooms& rooms, absl::Duration now) {
  begun_ = true;
  for (Room* room : rooms.all()) {
    if (room->worker.drained || room->worker.slots < group.ranks || !Suits(group, room->worker)) continue;
    by_earliest_.emplace_back(EarliestStart(*room, group.ranks, now), room);
    const absl::Duration latest = LatestStart(*room, group.ranks, now);
    if (latest != absl::InfiniteDuration()) by_latest_.emplace_back(latest, room);
  }
  std::make_heap(by_latest_.begin(), by_latest_.end(), std::greater<>());
  std::make_heap(by_earliest_.begin(), by_earliest_.end(), std::greater<>());
}

// Rooms only fill up, so the time of a room only grows: the top of the heap is right as soon as its time is.
absl::Duration KeptRooms::Latest(uint32_t ranks, absl::Duration now) {
  while (!by_latest_.empty()) {
    const auto [noted, room] = by_latest_.front();
    const absl::Duration latest = LatestStart(*room, ranks, now);
    if (latest == noted) return latest;
    std::pop_heap(by_latest_.begin(), by_latest_.end(), std::greater<>());
    by_latest_.pop_back();
    if (latest == absl::InfiniteDuration()) continue;
    by_latest_.emplace_back(latest, room);
    std::push_heap(by_latest_.begin(), by_latest_.end(), std::greater<>());
  }
  return absl::InfiniteDuration();
}

std::vector<Room*> KeptRooms::Keep(const WaitingGroup& group, const Rooms& rooms, absl::Duration now) {
  const bool first = !begun_;
  if (first) Begin(group, rooms, now);
  latest_ = Latest(group.ranks, now);
  if (first && by_earliest_.empty()) {  // No worker is large enough.
    for (const WorkerSet& set : SetsFor(group, rooms, /*open_only=*/false, /*good_only=*/false)) {
      if (SumOf(set, &FreeWorker::slots) < group.ranks) continue;
      for (const FreeWorker* worker : set) being_kept_.push_back(rooms.Find(worker->name));
    }
  }
  if (latest_ == absl::InfiniteDuration()) {
    for (const auto& [earliest, room] : by_earliest_) being_kept_.push_back(room);
    by_earliest_.clear();
  }
  while (!by_earliest_.empty() && by_earliest_.front().first <= latest_) {
    being_kept_.push_back(by_earliest_.front().second);
    std::pop_heap(by_earliest_.begin(), by_earliest_.end(), std::greater<>());
    by_earliest_.pop_back();
  }
  std::vector<Room*> new_ones;
  size_t left = 0;
  for (Room* room : being_kept_) {
    const bool is_new = room->kept_for == nullptr;
    if (!is_new && IsKeptWhole(*room)) continue;
    if (is_new) new_ones.push_back(room);
    if (is_new) room->kept_for = &group;
    room->kept_ranks += group.ranks;
    room->kept_until = std::max(room->kept_until, latest_);
    being_kept_[left++] = room;
  }
  being_kept_.resize(left);
  return new_ones;
}

Placer::Placer(Rooms& rooms, Instant now) : rooms_(rooms), now_(now) {
  uint32_t index = 0;
  for (Room* room : rooms.all()) {
    room->index = index++;
    if (room->worker.free == 0 || room->worker.drained) continue;
    open_[room->worker.free].push_back(room->index);
    open_slots_ += room->worker.free;
  }
}

Placer::~Placer() {
  for (const auto& [room, ranks] : taken_) room->worker.free += ranks;
  if (!any_kept_) return;
  for (Room* room : rooms_.all()) {
    room->kept_for = nullptr;
    room->kept_ranks = 0;
    room->kept_until = -absl::InfiniteDuration();
  }
}

// Takes the worker with the fewest free slots that are enough. Those that are avoided count only if `avoided_too`.
const Room* Placer::BestFit(const WaitingGroup& group, bool avoided_too) const {
  for (auto open = open_.lower_bound(group.ranks); open != open_.end(); ++open) {
    for (const uint32_t index : open->second) {
      const Room* room = rooms_.all()[index];
      if (Suits(group, room->worker) && (avoided_too || !IsAvoided(group, room->worker))) return room;
    }
  }
  return nullptr;
}

std::vector<PlacedPart> Placer::Together(const WaitingGroup& group, bool avoided_too) const {
  // In a full cluster this spares the making of sets of thousands of workers.
  if (open_slots_ < group.ranks) return {};
  uint64_t free = 0;
  for (const auto& [slots, indexes] : open_) {
    for (const uint32_t index : indexes) free += Suits(group, rooms_.all()[index]->worker) ? slots : 0;
  }
  if (free < group.ranks) return {};
  WorkerSet best;
  for (const WorkerSet& set : SetsFor(group, rooms_, /*open_only=*/true, /*good_only=*/!avoided_too)) {
    WorkerSet chosen = Fewest(group.ranks, set);
    if (!chosen.empty() && (best.empty() || chosen.size() < best.size())) best = std::move(chosen);
  }
  return best.empty() ? std::vector<PlacedPart>() : Spread(group.ranks, best);
}

std::vector<PlacedPart> Placer::PartsFor(const WaitingGroup& group) const {
  for (const bool avoided_too : {false, true}) {
    if (avoided_too && !rooms_.any_avoided() && group.unwanted.empty()) break;
    if (const Room* room = BestFit(group, avoided_too); room != nullptr) return {{room->worker.name, group.ranks}};
    std::vector<PlacedPart> parts = Together(group, avoided_too);
    if (!parts.empty()) return parts;
  }
  return {};
}

void Placer::Take(const PlacedPart& part) {
  Room& room = *rooms_.Find(part.worker);
  std::vector<uint32_t>& from = open_.at(room.worker.free);
  from.erase(std::lower_bound(from.begin(), from.end(), room.index));
  if (from.empty()) open_.erase(room.worker.free);
  room.worker.free -= part.ranks;
  open_slots_ -= part.ranks;
  taken_.emplace_back(&room, part.ranks);
  if (room.worker.free == 0) return;
  std::vector<uint32_t>& to = open_[room.worker.free];
  to.insert(std::lower_bound(to.begin(), to.end(), room.index), room.index);
}

// Takes rooms out of the open ones, because a group keeps them now.
void Placer::Close(const std::vector<Room*>& kept) {
  any_kept_ = any_kept_ || !kept.empty();
  // Rooms to take out, in the form of `open_`: by the number of free slots.
  std::map<uint32_t, std::vector<uint32_t>> closed;
  for (const Room* room : kept) {
    if (room->worker.free > 0 && !room->worker.drained) closed[room->worker.free].push_back(room->index);
  }
  for (auto& [free, indexes] : closed) {
    std::sort(indexes.begin(), indexes.end());
    std::vector<uint32_t>& open = open_.at(free);
    std::vector<uint32_t> left;
    left.reserve(open.size());
    std::set_difference(open.begin(), open.end(), indexes.begin(), indexes.end(), std::back_inserter(left));
    open = std::move(left);
    open_slots_ -= uint64_t{free} * indexes.size();
    if (open.empty()) open_.erase(free);
  }
}

Placement Placer::Place(const WaitingGroup& group) {
  Placement placement;
  Refusal& refusal = RefusalFor(group);
  if (refusal.refused == 0) placement.parts = PartsFor(group);
  if (placement.parts.empty()) {
    placement.lacks_slots = group.due;
    placement.reason = Refuse(group, refusal);
    if (!group.due) placement.reason = group.wait_why;
    return placement;
  }
  ++placed_;
  // A group that is not due takes its slots too, so that no other group gets the slots for its next try.
  for (const PlacedPart& part : placement.parts) Take(part);
  if (!group.due) return {{}, "", group.wait_why};
  placement.site = rooms_.Find(placement.parts[0].worker)->worker.site;
  const auto name = [](std::string* text, const PlacedPart& part) { absl::StrAppend(text, part.worker); };
  placement.reason = absl::StrCat("placed on worker", placement.parts.size() == 1 ? " " : "s ",
                                  absl::StrJoin(placement.parts, " and ", name), " at site ", placement.site);
  return placement;
}

Refusal& Placer::RefusalFor(const WaitingGroup& group) {
  const bool as_last = last_ != nullptr && last_->ranks == group.ranks && last_->command == group.command &&
                       last_->gpus_per_rank == group.gpus_per_rank && last_->site == group.site &&
                       last_->job_id == group.job_id;
  last_ = &group;
  if (as_last) return *of_last_;
  Needs needs = {group.ranks, group.gpus_per_rank, group.site, group.command,
                 rooms_.HasOwn(group.job_id) ? group.job_id : ""};
  of_last_ = &refusals_[std::move(needs)];
  return *of_last_;
}

// Says why the group waits, and keeps workers for it.
std::string Placer::Refuse(const WaitingGroup& group, Refusal& refusal) {
  // The first refused group keeps workers, so the second one may have another reason. The next ones have the second
  // one's reason, unless a group was placed meanwhile.
  if (refusal.refused < 2 || refusal.placed != placed_) refusal.reason = WhyItWaits(group, rooms_, now_);
  if (refusal.kept.keeps_more()) Close(refusal.kept.Keep(group, rooms_, now_.steady));
  ++refusal.refused;
  refusal.placed = placed_;
  return refusal.reason;
}

}  // namespace

std::string OverQuota(const WaitingGroup& group, const Quotas& quotas, std::set<std::string>& closed) {
  const auto quota = quotas.find(group.owner);
  if (quota == quotas.end()) return "";
  const auto& [used, limit] = quota->second;
  if (closed.count(group.owner) == 0 && used + group.ranks <= limit) return "";
  if (group.ranks <= limit) closed.insert(group.owner);
  return QuotaText(group, used, limit);
}

std::vector<WorkerSet> WorkersTogether(const WorkerSet& workers) {
  using Programs = std::tuple<std::string, std::string, std::string>;  // Site, MPI library, version of Hooke.
  using ByAddress = std::map<std::string, const FreeWorker*>;
  std::map<Programs, ByAddress> sets;
  const auto size = [](const FreeWorker* worker) { return std::make_tuple(worker->free, worker->slots); };
  for (const FreeWorker* worker : workers) {
    if (worker->address.empty()) continue;
    const FreeWorker*& at = sets[{worker->site, worker->mpi, worker->version}][worker->address];
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

std::vector<Placement> PlaceGroups(absl::Span<const WaitingGroup* const> queue, Rooms& rooms, Instant now,
                                   Quotas quotas) {
  std::vector<Placement> placements;
  placements.reserve(queue.size());
  Placer placer(rooms, now);
  // Owners with a group that waits because of their quota. Their later groups wait as well.
  std::set<std::string> closed;
  for (const WaitingGroup* group : queue) {
    Placement& placement = placements.emplace_back();
    if (placement.reason = OverQuota(*group, quotas, closed); !placement.reason.empty()) continue;
    const size_t placed = placer.placed();
    placement = placer.Place(*group);
    const auto quota = placer.placed() > placed ? quotas.find(group->owner) : quotas.end();
    if (quota != quotas.end()) quota->second.used += group->ranks;
  }
  return placements;
}

std::vector<Placement> PlaceGroups(absl::Span<const WaitingGroup> queue, std::vector<FreeWorker> workers,
                                   absl::Time now, Quotas quotas) {
  Rooms rooms(std::move(workers));
  std::vector<const WaitingGroup*> groups;
  groups.reserve(queue.size());
  for (const WaitingGroup& group : queue) groups.push_back(&group);
  return PlaceGroups(groups, rooms, {now, absl::ZeroDuration()}, std::move(quotas));
}

}  // namespace hooke
