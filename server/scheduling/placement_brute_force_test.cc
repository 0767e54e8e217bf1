// PlaceGroups against its contract, on small clusters made by chance. This test shares no code with it: it knows who
// may run where from the comments of placement.h, and tries all sets of workers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/scheduling/placement.h"

namespace hooke {
namespace {

using Workers = std::vector<FreeWorker>;

bool MayRun(const WaitingGroup& group, const FreeWorker& worker) {
  if (worker.drained || (group.command && !worker.allows_commands)) return false;
  if (!group.site.empty() && group.site != worker.site) return false;
  if (!worker.only_job.empty() && worker.only_job != group.job_id) return false;
  return group.gpus_per_rank * worker.slots <= worker.gpus;
}

bool IsLastResort(const WaitingGroup& group, const FreeWorker& worker) {
  return worker.avoided || group.unwanted.count(worker.name) > 0;
}

// Returns whether these workers can run one group together.
bool FitTogether(const std::vector<const FreeWorker*>& set) {
  std::set<std::string> addresses;
  for (const FreeWorker* worker : set) {
    if (worker->site != set[0]->site || worker->mpi != set[0]->mpi || worker->address.empty()) return false;
    addresses.insert(worker->address);
  }
  return addresses.size() == set.size();
}

// Returns the smallest number of workers that have room for the group, of all sets of workers; 0: no set has.
size_t FewestWorkers(const WaitingGroup& group, const Workers& workers, bool last_resort_too) {
  size_t fewest = 0;
  for (uint32_t chosen = 1; chosen < (1u << workers.size()); ++chosen) {
    std::vector<const FreeWorker*> set;
    uint64_t room = 0;
    bool may = true;
    for (size_t i = 0; i < workers.size(); ++i) {
      if ((chosen >> i & 1) == 0) continue;
      set.push_back(&workers[i]);
      room += workers[i].free;
      may = may && MayRun(group, workers[i]) && (last_resort_too || !IsLastResort(group, workers[i]));
    }
    if (!may || room < group.ranks || (set.size() > 1 && !FitTogether(set))) continue;
    if (fewest == 0 || set.size() < fewest) fewest = set.size();
  }
  return fewest;
}

// Returns the first second at which one worker has room for the whole group, if each occupant ends at its time and no
// other group comes. The largest number: there is no such time.
int64_t StartOnOneWorker(const WaitingGroup& group, const Workers& workers) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const FreeWorker& worker : workers) {
    if (!MayRun(group, worker)) continue;
    for (int64_t second = 0; second < 100; ++second) {
      uint64_t free = worker.free;
      for (const Occupant& occupant : worker.occupants) {
        free += *occupant.ends_at <= absl::Seconds(second) ? occupant.ranks : 0;
      }
      if (free < group.ranks) continue;
      first = std::min(first, second);
      break;
    }
  }
  return first;
}

// Takes the placed ranks from the workers. Fails if a part is where the group may not run.
void Take(const WaitingGroup& group, const Placement& placement, Workers& workers) {
  std::vector<const FreeWorker*> set;
  uint32_t ranks = 0;
  for (const PlacedPart& part : placement.parts) {
    const auto is_it = [&part](const FreeWorker& worker) { return worker.name == part.worker; };
    const auto found = std::find_if(workers.begin(), workers.end(), is_it);
    ASSERT_NE(found, workers.end());
    ASSERT_TRUE(MayRun(group, *found)) << part.worker;
    ASSERT_GT(part.ranks, 0u);
    ASSERT_LE(part.ranks, found->free) << part.worker;
    found->free -= part.ranks;
    ranks += part.ranks;
    set.push_back(&*found);
  }
  ASSERT_EQ(ranks, group.ranks);
  ASSERT_TRUE(set.size() == 1 || FitTogether(set));
}

class Chance {
 public:
  explicit Chance(uint32_t seed) : random_(seed) {}
  uint32_t Pick(uint32_t least, uint32_t most) { return std::uniform_int_distribution<uint32_t>(least, most)(random_); }
  bool OneOf(uint32_t many) { return Pick(1, many) == 1; }

  FreeWorker Worker(uint32_t number) {
    FreeWorker worker = {absl::StrCat("w", number), OneOf(3) ? "cloud" : "hpc", Pick(1, 5)};
    worker.free = worker.slots;
    if (!OneOf(5)) worker.address = absl::StrCat("10.0.0.", Pick(1, 9));
    worker.mpi = OneOf(5) ? "mpich" : "openmpi";
    worker.allows_commands = OneOf(2);
    worker.gpus = OneOf(4) ? 8 : 0;
    worker.drained = OneOf(10);
    worker.avoided = OneOf(8);
    if (OneOf(10)) worker.only_job = absl::StrCat("q-", Pick(1, 3));
    while (worker.free > 0 && !OneOf(3)) {
      const uint32_t ranks = Pick(1, worker.free);
      worker.occupants.push_back({"r-1", ranks, absl::Seconds(Pick(1, 60))});
      worker.free -= ranks;
    }
    return worker;
  }

  WaitingGroup Group(uint32_t job, uint32_t number) {
    WaitingGroup group = {absl::StrCat("q-", job), number, Pick(1, 6), OneOf(3) ? "hpc" : ""};
    group.command = OneOf(5);
    group.gpus_per_rank = OneOf(8) ? 1 : 0;
    if (OneOf(5)) group.unwanted.insert(absl::StrCat("w", Pick(1, 6)));
    return group;
  }

 private:
  std::mt19937 random_;
};

TEST(PlacementBruteForceTest, KeepsItsContract) {
  size_t on_one = 0, on_several = 0, waits = 0, backfilled = 0;
  for (uint32_t seed = 1; seed <= 10000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Chance chance(seed);
    Workers workers;
    for (uint32_t i = chance.Pick(1, 6); i > 0; --i) workers.push_back(chance.Worker(i));
    std::vector<WaitingGroup> queue;
    for (uint32_t i = chance.Pick(1, 6); i > 0; --i) queue.push_back(chance.Group(chance.Pick(1, 3), i));
    const std::vector<Placement> placements = PlaceGroups(queue, workers, absl::UnixEpoch());
    ASSERT_EQ(placements.size(), queue.size());
    const WaitingGroup* first_to_wait = nullptr;
    int64_t start = 0;
    for (size_t i = 0; i < queue.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("group ", i));
      const size_t parts = placements[i].parts.size();
      if (first_to_wait == nullptr) {
        // No group ahead of this one waits. So this one starts if any set of workers has room, on as few as possible.
        size_t fewest = FewestWorkers(queue[i], workers, /*last_resort_too=*/false);
        if (fewest == 0) fewest = FewestWorkers(queue[i], workers, /*last_resort_too=*/true);
        ASSERT_EQ(parts, fewest);
      }
      if (parts > 0) {
        ASSERT_NO_FATAL_FAILURE(Take(queue[i], placements[i], workers));
      } else if (first_to_wait == nullptr) {
        first_to_wait = &queue[i];
        start = StartOnOneWorker(queue[i], workers);
      }
      on_one += parts == 1 ? 1 : 0;
      on_several += parts > 1 ? 1 : 0;
      waits += parts == 0 ? 1 : 0;
      backfilled += first_to_wait != nullptr && parts > 0 ? 1 : 0;
    }
    // The groups that started although this one waits ahead of them do not delay it, however long they run.
    if (first_to_wait != nullptr) {
      ASSERT_EQ(StartOnOneWorker(*first_to_wait, workers), start);
    }
  }
  std::cout << on_one << " groups on one worker, " << on_several << " on several, " << waits << " wait, " << backfilled
            << " went past one that waits\n";
  EXPECT_GT(on_one, 3000u);
  EXPECT_GT(on_several, 200u);
  EXPECT_GT(waits, 2000u);
  EXPECT_GT(backfilled, 200u);
}

}  // namespace
}  // namespace hooke
