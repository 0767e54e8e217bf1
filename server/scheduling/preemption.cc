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
  // Slots of the victims on all workers, also on others than `workers`. So a subset of the victims always has fewer.
  uint64_t ranks = 0;
};

class Planner {
 public:
  Planner(absl::Span<const FreeWorker> workers, absl::Span<const RunningGroup> running)
      : workers_(workers), running_(running), leaves_(running.size(), false) {
    index_of_.reserve(workers.size());
    for (const FreeWorker& worker : workers) {
      index_of_[worker.name] = on_worker_.size();
      on_worker_.push_back({worker.drained ? 0 : worker.free, {}});
    }
    for (size_t i = 0; i < running.size(); ++i) {
      const RunningGroup& group = running[i];
      for (const PlacedPart& part : group.parts) {
        const auto found = index_of_.find(part.worker);
        if (found == index_of_.end()) continue;
        OnWorker& worker = on_worker_[found->second];
        if (group.leaving) worker.room += part.ranks;
        if (group.preemptible && !group.leaving) worker.parts.push_back({i, group.priority, part.ranks});
      }
    }
  }

  // Makes room for the group. Returns who leaves for it; perhaps nobody.
  std::vector<size_t> MakeRoom(const HinderedGroup& waiting) {
    Needs needs = {waiting.group.ranks, waiting.group.gpus_per_rank, waiting.group.site, waiting.group.command,
                   waiting.group.job_id};
    const auto [in_vain, is_new] = in_vain_.try_emplace(std::move(needs), waiting.priority);
    if (!is_new && waiting.priority <= in_vain->second) return {};
    std::optional<Plan> best;
    bool large = false;
    for (size_t i = 0; i < workers_.size(); ++i) {
      const FreeWorker& worker = workers_[i];
      if (worker.slots < waiting.group.ranks || worker.drained || !Suits(waiting.group, worker)) continue;
      large = true;
      if (!MayBeBetter(waiting, on_worker_[i], best)) continue;
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
    if (!best.has_value()) {
      in_vain->second = std::max(in_vain->second, waiting.priority);
      return {};
    }
    in_vain_.erase(in_vain);
    Take(*best, waiting.group.ranks);
    // A victim may give up slots on other workers, too.
    if (!best->victims.empty()) in_vain_.clear();
    return best->victims;
  }

 private:
  // A part of a preemptible group.
  struct Part {
    size_t group = 0;
    uint32_t priority = 0;
    uint32_t ranks = 0;
  };
  struct OnWorker {
    uint64_t room = 0;  // Slots that are free now, or become free because a group is leaving.
    std::vector<Part> parts;
  };
  // Ranks, GPUs of each, site, whether the group is a command, and its job, for which some workers may be.
  using Needs = std::tuple<uint32_t, uint32_t, std::string, bool, std::string>;

  // Says which plan is better: the one in which nobody leaves, then by the priorities, then by the slots, of those that
  // leave.
  using Cost = std::tuple<bool, uint32_t, uint64_t>;
  static Cost CostOf(const Plan& plan) { return {!plan.victims.empty(), plan.highest, plan.ranks}; }

  // Returns false if no plan for this worker alone is better than `best`. That spares most of the plans.
  bool MayBeBetter(const HinderedGroup& waiting, const OnWorker& worker, const std::optional<Plan>& best) const {
    if (worker.room >= waiting.group.ranks) return true;
    uint64_t room = worker.room;
    uint32_t lowest = UINT32_MAX;
    for (const Part& part : worker.parts) {
      if (part.priority >= waiting.priority || leaves_[part.group]) continue;
      room += part.ranks;
      lowest = std::min(lowest, part.priority);
    }
    if (room < waiting.group.ranks) return false;
    return !best.has_value() || Cost{true, lowest, waiting.group.ranks - worker.room} < CostOf(*best);
  }

  // Replaces `best` by the plan for these workers if that one is better.
  void Consider(const HinderedGroup& waiting, WorkerSet workers, std::optional<Plan>& best) const {
    uint64_t room = 0;
    // The groups that could leave, and how many slots of these workers each of them has.
    std::map<size_t, uint64_t> slots_of;
    for (const FreeWorker* worker : workers) {
      const OnWorker& on_worker = on_worker_[index_of_.at(worker->name)];
      room += on_worker.room;
      for (const Part& part : on_worker.parts) {
        if (!leaves_[part.group] && part.priority < waiting.priority) slots_of[part.group] += part.ranks;
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
    if (!best.has_value() || CostOf(plan) < CostOf(*best)) best = std::move(plan);
  }

  // Notes that the victims leave, and that the waiting group gets its slots.
  void Take(const Plan& plan, uint64_t ranks) {
    for (const size_t victim : plan.victims) {
      leaves_[victim] = true;
      for (const PlacedPart& part : running_[victim].parts) {
        if (const auto found = index_of_.find(part.worker); found != index_of_.end()) {
          on_worker_[found->second].room += part.ranks;
        }
      }
    }
    for (const FreeWorker* worker : plan.workers) {
      uint64_t& room = on_worker_[index_of_.at(worker->name)].room;
      const uint64_t taken = std::min(room, ranks);
      room -= taken;
      ranks -= taken;
    }
  }

  const absl::Span<const FreeWorker> workers_;
  const absl::Span<const RunningGroup> running_;
  std::vector<bool> leaves_;  // leaves_[i]: running_[i] was chosen to leave.
  absl::flat_hash_map<absl::string_view, size_t> index_of_;
  std::vector<OnWorker> on_worker_;  // on_worker_[i] belongs to workers_[i].
  // Needs for which there was no plan, and the highest priority for which there was none.
  std::map<Needs, uint32_t> in_vain_;
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
