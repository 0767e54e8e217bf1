// Backfill against an oracle on small clusters, made by chance. The oracle tries every way in which the groups of
// unknown end may end, and every choice of workers for the groups that wait.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/scheduling/placement.h"

namespace hooke {
namespace {

constexpr double kNever = 1e9;

// When slots of a worker become free, in one possible future.
struct Release {
  double at = 0;
  uint32_t ranks = 0;
};
struct Machine {
  std::string name, site;
  uint32_t free = 0;
  std::vector<Release> releases;
};
using Future = std::vector<Machine>;

// A group that has started, or will, and then stays.
struct Stay {
  size_t machine = 0;
  double from = 0;
  uint32_t ranks = 0;
};

// Returns whether the machine has room for the group from `from` on, for good.
bool Fits(const Machine& machine, size_t index, const std::vector<Stay>& stays, const WaitingGroup& group,
          double from) {
  if (!group.site.empty() && group.site != machine.site) return false;
  std::set<double> moments = {from};
  for (const Stay& stay : stays) moments.insert(std::max(from, stay.from));
  for (const double moment : moments) {
    int64_t room = machine.free;
    for (const Release& release : machine.releases) room += release.at <= moment ? release.ranks : 0;
    for (const Stay& stay : stays) room -= stay.machine == index && stay.from <= moment ? stay.ranks : 0;
    if (room < group.ranks) return false;
  }
  return true;
}

// Returns the earliest starts of the groups, in their order: that of the first is as early as possible, then that of
// the second, and so on.
std::vector<double> EarliestStarts(const Future& future, std::vector<Stay>& stays,
                                   const std::vector<WaitingGroup>& groups, size_t next = 0) {
  if (next == groups.size()) return {};
  std::set<double> moments = {0};
  for (const Machine& machine : future) {
    for (const Release& release : machine.releases) moments.insert(release.at);
  }
  for (const double moment : moments) {
    std::vector<double> best;
    for (size_t i = 0; i < future.size() && moment < kNever; ++i) {
      if (!Fits(future[i], i, stays, groups[next], moment)) continue;
      stays.push_back({i, moment, groups[next].ranks});
      std::vector<double> starts = EarliestStarts(future, stays, groups, next + 1);
      stays.pop_back();
      starts.insert(starts.begin(), moment);
      if (best.empty() || starts < best) best = std::move(starts);
    }
    if (!best.empty()) return best;
  }
  std::vector<double> starts = EarliestStarts(future, stays, groups, next + 1);
  starts.insert(starts.begin(), kNever);
  return starts;
}

struct Cluster {
  std::vector<FreeWorker> workers;
  std::vector<WaitingGroup> queue;
};

Cluster ClusterFrom(std::mt19937& random) {
  const auto pick = [&random](uint32_t least, uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(least, most)(random);
  };
  Cluster cluster;
  uint32_t unknown = 0;
  for (uint32_t i = pick(2, 4); i > 0; --i) {
    FreeWorker worker = {absl::StrCat("w", i), pick(0, 3) == 0 ? "cloud" : "hpc", pick(1, 4)};
    worker.free = worker.slots;
    while (worker.free > 0 && pick(0, 4) > 0) {
      const uint32_t ranks = pick(1, worker.free);
      const bool known = unknown == 2 || pick(0, 2) > 0;
      unknown += known ? 0 : 1;
      worker.occupants.push_back({"r", ranks, std::nullopt});
      if (known) worker.occupants.back().ends_at = absl::Seconds(10 * pick(1, 3));
      worker.free -= ranks;
    }
    cluster.workers.push_back(std::move(worker));
  }
  for (uint32_t i = 0, n = pick(2, 4); i < n; ++i) {
    cluster.queue.push_back({absl::StrCat("q-", i), 0, pick(1, 4), pick(0, 3) == 0 ? "cloud" : ""});
  }
  return cluster;
}

// Returns every future of the cluster: each group of unknown end may end before, between or after those of known end,
// before or after another one of unknown end, or never.
std::vector<Future> FuturesOf(const Cluster& cluster) {
  std::vector<Future> futures = {{}};
  for (const FreeWorker& worker : cluster.workers) {
    for (Future& future : futures) future.push_back({worker.name, worker.site, worker.free, {}});
    for (const Occupant& occupant : worker.occupants) {
      std::vector<double> ends = {1, 2, 11, 12, 21, 22, 31, 32, kNever};
      if (occupant.ends_at.has_value()) ends = {absl::ToDoubleSeconds(*occupant.ends_at)};
      std::vector<Future> longer;
      for (const Future& future : futures) {
        for (const double end : ends) {
          longer.push_back(future);
          longer.back().back().releases.push_back({end, occupant.ranks});
        }
      }
      futures = std::move(longer);
    }
  }
  return futures;
}

class Oracle {
 public:
  Oracle(const Cluster& cluster, const std::vector<Placement>& placements)
      : cluster_(cluster), futures_(FuturesOf(cluster)) {
    for (const Placement& placement : placements) {
      const auto at = std::find_if(cluster.workers.begin(), cluster.workers.end(), [&](const FreeWorker& worker) {
        return !placement.parts.empty() && worker.name == placement.parts[0].worker;
      });
      machines_.push_back(static_cast<size_t>(at - cluster.workers.begin()));
    }
  }

  bool IsPlaced(size_t group) const { return machines_[group] < cluster_.workers.size(); }

  // Returns whether some future delays a group that waits ahead of `group`, if `group` starts now on `machine`, too.
  bool Delays(size_t group, size_t machine) const {
    for (const Future& future : futures_) {
      for (size_t ahead = 0; ahead < group; ++ahead) {
        if (IsPlaced(ahead)) continue;
        if (StartOf(future, ahead, std::nullopt) < StartOf(future, ahead, Stay{machine, 0, Ranks(group)})) return true;
      }
    }
    return false;
  }

  bool HasRoom(size_t group, size_t machine) const {
    uint32_t taken = 0;
    for (size_t i = 0; i < machines_.size(); ++i) taken += machines_[i] == machine ? Ranks(i) : 0;
    const FreeWorker& worker = cluster_.workers[machine];
    const std::string& site = cluster_.queue[group].site;
    return (site.empty() || site == worker.site) && worker.free >= taken + Ranks(group);
  }

  size_t machine(size_t group) const { return machines_[group]; }

 private:
  uint32_t Ranks(size_t group) const { return cluster_.queue[group].ranks; }

  // Returns when the group starts if nothing behind it has started but `other`.
  double StartOf(const Future& future, size_t group, const std::optional<Stay>& other) const {
    std::vector<Stay> stays;
    std::vector<WaitingGroup> waiting;
    for (size_t i = 0; i <= group; ++i) {
      if (IsPlaced(i)) stays.push_back({machines_[i], 0, Ranks(i)});
      if (!IsPlaced(i)) waiting.push_back(cluster_.queue[i]);
    }
    if (other.has_value()) stays.push_back(*other);
    return EarliestStarts(future, stays, waiting).back();
  }

  const Cluster& cluster_;
  const std::vector<Future> futures_;
  std::vector<size_t> machines_;  // By group; the number of workers if it waits.
};

// A group that starts although others wait ahead of it delays none of them, in any future. Most of the groups that
// could overtake in this way do so. Without estimates fewer groups overtake.
TEST(BackfillTest, DelaysNoGroupAhead) {
  std::mt19937 random(1);
  int overtake = 0, missed = 0, without_estimates = 0;
  for (int i = 0; i < 2000; ++i) {
    const Cluster cluster = ClusterFrom(random);
    const std::vector<Placement> placements = PlaceGroups(cluster.queue, cluster.workers, absl::UnixEpoch());
    const Oracle oracle(cluster, placements);
    bool waits = false;
    for (size_t group = 0; group < cluster.queue.size(); ++group) {
      if (!oracle.IsPlaced(group)) {
        waits = true;
        bool could = false;
        for (size_t machine = 0; machine < cluster.workers.size() && !could; ++machine) {
          could = oracle.HasRoom(group, machine) && !oracle.Delays(group, machine);
        }
        missed += could ? 1 : 0;
      } else if (waits) {
        ++overtake;
        ASSERT_FALSE(oracle.Delays(group, oracle.machine(group))) << "cluster " << i << " group " << group;
      }
    }
    Cluster blind = cluster;
    for (FreeWorker& worker : blind.workers) worker.occupants.clear();
    waits = false;
    for (const Placement& placement : PlaceGroups(blind.queue, blind.workers, absl::UnixEpoch())) {
      without_estimates += waits && !placement.parts.empty() ? 1 : 0;
      waits = waits || placement.parts.empty();
    }
  }
  std::cout << overtake << " groups overtook others, " << missed << " more could have; " << without_estimates
            << " overtook without estimates\n";
  EXPECT_GT(overtake, 300);
  EXPECT_LT(missed, overtake / 4);
  EXPECT_GT(overtake, without_estimates);
}

// Small groups that come without end do not keep a large one from starting.
TEST(BackfillTest, SmallGroupsDoNotStarveALargeOne) {
  std::vector<FreeWorker> workers = {{"w1", "hpc", 4, 1}, {"w2", "hpc", 4, 2}};
  for (int ended = 0; ended < 3; ++ended) {
    const std::vector<Placement> placements =
        PlaceGroups({{"large-1", 0, 4, ""}, {"small-2", 0, 1, ""}}, workers, absl::UnixEpoch());
    ASSERT_TRUE(placements[0].parts.empty());
    ASSERT_TRUE(placements[1].parts.empty()) << "it took a slot of " << placements[1].parts[0].worker;
    ++workers[0].free;
    if (ended == 2) break;
  }
  EXPECT_EQ(PlaceGroups({{"large-1", 0, 4, ""}}, workers, absl::UnixEpoch())[0].parts[0].worker, "w1");
}

}  // namespace
}  // namespace hooke
