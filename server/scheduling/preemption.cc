#include "server/scheduling/preemption.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/scheduling/room.h"

namespace hooke {
namespace {

// The groups that leave so that a target has room, and what they cost.
struct Plan {
  std::vector<const FreeWorker*> workers;
  std::vector<size_t> victims;
  uint32_t highest = 0;  // The highest priority of a victim.
  uint64_t ranks = 0;    // Slots of the victims on all workers. So a part of the victims is always better than all.
};

class Planner {
 public:
  Planner(absl::Span<const FreeWorker> workers, absl::Span<const RunningGroup> running)
      : workers_(workers), running_(running), leaves_(running.size(), false) {
    for (const FreeWorker& worker : workers) room_[worker.name] = worker.drained ? 0 : worker.free;
    for (size_t i = 0; i < running.size(); ++i) {
      const RunningGroup& group = running[i];
      for (const PlacedPart& part : group.parts) {
        const auto room = room_.find(part.worker);
        if (room == room_.end()) continue;
        if (group.leaving) room->second += part.ranks;
        if (group.preemptible && !group.leaving) on_worker_[part.worker].push_back({i, part.ranks});
      }
    }
  }

  // Makes room for the group. Returns who leaves for it; perhaps nobody.
  std::vector<size_t> MakeRoom(const HinderedGroup& waiting) {
    std::optional<Plan> best;
    bool large = false;
    for (const FreeWorker& worker : workers_) {
      if (worker.drained || !Suits(waiting.group, worker)) continue;
      if (worker.slots < waiting.group.ranks) continue;
      large = true;
      Consider(waiting, {&worker}, best);
      if (best.has_value() && best->victims.empty()) break;
    }
    if (!large) {
      WorkerSet suitable;
      for (const FreeWorker& worker : workers_) {
        if (!worker.drained && Suits(waiting.group, worker)) suitable.push_back(&worker);
      }
      for (WorkerSet& set : WorkersTogether(suitable)) Consider(waiting, std::move(set), best);
    }
    if (!best.has_value()) return {};
    Take(*best, waiting.group.ranks);
    return best->victims;
  }

 private:
  struct Part {
    size_t group = 0;
    uint32_t ranks = 0;
  };

  // Replaces `best` by the plan for these workers if that one is better.
  void Consider(const HinderedGroup& waiting, WorkerSet workers, std::optional<Plan>& best) const {
    uint64_t room = 0;
    std::map<size_t, uint64_t> slots_of;  // Candidates, and their slots on these workers.
    for (const FreeWorker* worker : workers) {
      room += room_.at(worker->name);
      const auto parts = on_worker_.find(worker->name);
      if (parts == on_worker_.end()) continue;
      for (const Part& part : parts->second) {
        if (!leaves_[part.group] && running_[part.group].priority < waiting.priority)
          slots_of[part.group] += part.ranks;
      }
    }
    std::vector<std::pair<size_t, uint64_t>> candidates(slots_of.begin(), slots_of.end());
    absl::c_sort(candidates, [this](const auto& a, const auto& b) {
      const auto order = [this](const std::pair<size_t, uint64_t>& of) {
        return std::make_tuple(running_[of.first].priority, ~of.second, ~running_[of.first].job, of.first);
      };
      return order(a) < order(b);
    });
    Plan plan;
    plan.workers = std::move(workers);
    std::vector<std::pair<size_t, uint64_t>> chosen;
    for (const auto& candidate : candidates) {
      if (room >= waiting.group.ranks) break;
      chosen.push_back(candidate);
      room += candidate.second;
    }
    if (room < waiting.group.ranks) return;
    // A candidate stays if the other ones give enough room. The candidates of the highest priority are tried first.
    for (size_t i = chosen.size(); i-- > 0;) {
      if (room - chosen[i].second < waiting.group.ranks) continue;
      room -= chosen[i].second;
      chosen.erase(chosen.begin() + static_cast<ptrdiff_t>(i));
    }
    for (const auto& candidate : chosen) {
      const size_t group = candidate.first;
      plan.victims.push_back(group);
      plan.highest = std::max(plan.highest, running_[group].priority);
      for (const PlacedPart& part : running_[group].parts) plan.ranks += part.ranks;
    }
    const auto cost = [](const Plan& of) { return std::make_tuple(!of.victims.empty(), of.highest, of.ranks); };
    if (!best.has_value() || cost(plan) < cost(*best)) best = std::move(plan);
  }

  // Notes that the victims leave, and that the waiting group gets its slots.
  void Take(const Plan& plan, uint64_t ranks) {
    for (const size_t victim : plan.victims) {
      leaves_[victim] = true;
      for (const PlacedPart& part : running_[victim].parts) {
        if (const auto room = room_.find(part.worker); room != room_.end()) room->second += part.ranks;
      }
    }
    for (const FreeWorker* worker : plan.workers) {
      uint64_t& room = room_.at(worker->name);
      const uint64_t taken = std::min(room, ranks);
      room -= taken;
      ranks -= taken;
    }
  }

  const absl::Span<const FreeWorker> workers_;
  const absl::Span<const RunningGroup> running_;
  std::vector<bool> leaves_;                                             // By group: it was chosen.
  absl::flat_hash_map<absl::string_view, uint64_t> room_;                // By worker: slots that are or become free.
  absl::flat_hash_map<absl::string_view, std::vector<Part>> on_worker_;  // By worker: its preemptible groups.
};

}  // namespace

std::vector<Eviction> ChooseEvictions(absl::Span<const HinderedGroup> waiting, absl::Span<const FreeWorker> workers,
                                      absl::Span<const RunningGroup> running) {
  std::vector<Eviction> evictions;
  Planner planner(workers, running);
  for (size_t i = 0; i < waiting.size(); ++i) {
    // Groups that nobody makes room for still come first for slots that become free anyway.
    for (const size_t victim : planner.MakeRoom(waiting[i])) evictions.push_back({victim, i});
  }
  return evictions;
}

}  // namespace hooke
