// Which groups leave for others, in cases by hand and against all possible choices.

#include "server/scheduling/preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "server/scheduling/room.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

FreeWorker WorkerOf(const std::string& name, uint32_t slots, uint32_t free) {
  FreeWorker worker = {name, "hpc", slots, free};
  worker.address = name;
  return worker;
}

HinderedGroup Waits(uint32_t ranks, uint32_t priority, uint32_t group = 0) {
  HinderedGroup one;
  one.group = {"urgent-9", group, ranks, ""};
  one.priority = priority;
  return one;
}

RunningGroup Runs(uint64_t job, uint32_t priority, std::vector<PlacedPart> parts) {
  return {job, priority, true, false, std::move(parts)};
}

std::vector<size_t> Victims(const std::vector<HinderedGroup>& waiting, const std::vector<FreeWorker>& workers,
                            const std::vector<RunningGroup>& running) {
  std::vector<size_t> victims;
  for (const Eviction& eviction : ChooseEvictions(waiting, workers, running)) victims.push_back(eviction.running);
  return victims;
}

TEST(PreemptionTest, TheLowestPriorityLeaves) {
  const std::vector<FreeWorker> workers = {WorkerOf("a", 4, 0), WorkerOf("b", 4, 0)};
  std::vector<RunningGroup> running = {Runs(1, 3, {{"a", 4}}), Runs(2, 1, {{"b", 2}}), Runs(3, 0, {{"b", 2}})};
  EXPECT_THAT(Victims({Waits(2, 5)}, workers, running), ElementsAre(2));
  EXPECT_THAT(Victims({Waits(4, 5)}, workers, running), UnorderedElementsAre(1, 2));
  EXPECT_THAT(Victims({Waits(4, 1)}, workers, running), IsEmpty()) << "only half of its room can be made";
  EXPECT_THAT(Victims({Waits(2, 5, 0), Waits(2, 5, 1)}, workers, running), UnorderedElementsAre(1, 2));
  running[2].preemptible = false;
  EXPECT_THAT(Victims({Waits(2, 5)}, workers, running), ElementsAre(1));
}

// Slots that are free, or become free because a group leaves already, are enough.
TEST(PreemptionTest, NobodyLeavesInVain) {
  std::vector<RunningGroup> running = {Runs(1, 0, {{"a", 2}}), Runs(2, 0, {{"a", 2}})};
  EXPECT_THAT(Victims({Waits(2, 5)}, {WorkerOf("a", 6, 2)}, running), IsEmpty());
  running[0].leaving = true;
  EXPECT_THAT(Victims({Waits(2, 5)}, {WorkerOf("a", 4, 0)}, running), IsEmpty());
  EXPECT_THAT(Victims({Waits(2, 5), Waits(2, 5)}, {WorkerOf("a", 4, 0)}, running), ElementsAre(1));
  EXPECT_THAT(Victims({Waits(2, 0)}, {WorkerOf("a", 4, 0)}, running), IsEmpty()) << "its priority is not higher";
  EXPECT_THAT(Victims({Waits(2, 0), Waits(2, 5)}, {WorkerOf("a", 4, 0)}, running), ElementsAre(1))
      << "the first one in the queue gets what becomes free anyway";
}

// A group on several workers makes room for one on several workers, and of equal ones the newest job leaves.
TEST(PreemptionTest, SeveralWorkers) {
  const std::vector<FreeWorker> workers = {WorkerOf("a", 2, 0), WorkerOf("b", 2, 0), WorkerOf("c", 2, 0)};
  const std::vector<RunningGroup> running = {Runs(1, 0, {{"a", 2}, {"b", 1}}), Runs(2, 0, {{"c", 2}}),
                                             Runs(3, 0, {{"b", 1}})};
  EXPECT_THAT(Victims({Waits(4, 5)}, workers, running), UnorderedElementsAre(0, 1)) << "the largest ones";
  EXPECT_THAT(Victims({Waits(6, 5)}, workers, running), UnorderedElementsAre(0, 1, 2));
  EXPECT_THAT(Victims({Waits(1, 5)}, workers, running), ElementsAre(2));
  EXPECT_THAT(Victims({Waits(7, 5)}, workers, running), IsEmpty());
}

// Returns whether the group has room once the groups of `gone` have left. The room must be on one worker, or on all
// workers together if no worker is large enough. Bit i of `gone` stands for running[i].
bool HasRoom(const HinderedGroup& waiting, const std::vector<FreeWorker>& workers,
             const std::vector<RunningGroup>& running, uint32_t gone) {
  uint64_t all = 0;
  bool large = false, one = false;
  for (const FreeWorker& worker : workers) {
    uint64_t room = worker.free;
    for (size_t i = 0; i < running.size(); ++i) {
      if (!running[i].leaving && (gone >> i & 1) == 0) continue;
      for (const PlacedPart& part : running[i].parts) room += part.worker == worker.name ? part.ranks : 0;
    }
    large = large || worker.slots >= waiting.group.ranks;
    one = one || room >= waiting.group.ranks;
    all += room;
  }
  return large ? one : all >= waiting.group.ranks;
}

// Compares the victims for one waiting group with all possible choices, on small random clusters. If some choice of
// groups that may leave makes room, the victims make room, too. Their highest priority is the lowest possible one, and
// none of them could stay.
TEST(PreemptionTest, EqualsTheBestOfAllChoices) {
  std::mt19937 random(1);
  const auto below = [&random](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  int evicted = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<FreeWorker> workers;
    std::vector<RunningGroup> running;
    for (uint32_t w = 0; w < 1 + below(3); ++w) {
      workers.push_back(WorkerOf(std::string(1, static_cast<char>('a' + w)), 1 + below(5), 0));
      workers.back().free = workers.back().slots;
    }
    for (uint32_t g = 0; g < below(7); ++g) {
      RunningGroup group = {g, below(3), below(4) != 0, below(5) == 0, {}};
      for (FreeWorker& worker : workers) {
        const uint32_t ranks = std::min(below(4), worker.free);
        if (ranks == 0 || (!group.parts.empty() && below(2) == 0)) continue;
        group.parts.push_back({worker.name, ranks});
        worker.free -= ranks;
      }
      running.push_back(std::move(group));
    }
    const HinderedGroup waiting = Waits(1 + below(7), below(4));
    std::optional<uint32_t>
        // The least possible value of: 1 + the highest priority of a group that leaves. 0: no group has to leave.
        lowest;
    for (uint32_t gone = 0; gone < 1u << running.size(); ++gone) {
      uint32_t highest = 0;
      bool allowed = true;
      for (size_t i = 0; i < running.size(); ++i) {
        if ((gone >> i & 1) == 0) continue;
        allowed = allowed && running[i].preemptible && !running[i].leaving && running[i].priority < waiting.priority;
        highest = std::max(highest, running[i].priority + 1);
      }
      if (allowed && HasRoom(waiting, workers, running, gone)) lowest = std::min(lowest.value_or(UINT32_MAX), highest);
    }
    uint32_t gone = 0, highest = 0;
    for (const size_t i : Victims({waiting}, workers, running)) {
      ASSERT_TRUE(running[i].preemptible && !running[i].leaving && running[i].priority < waiting.priority) << trial;
      gone |= 1u << i;
      highest = std::max(highest, running[i].priority + 1);
    }
    ASSERT_EQ(highest, lowest.value_or(0)) << trial;
    if (gone == 0) continue;
    ++evicted;
    ASSERT_TRUE(HasRoom(waiting, workers, running, gone)) << trial;
    for (size_t i = 0; i < running.size(); ++i) {
      const bool leaves = (gone >> i & 1) != 0;
      ASSERT_FALSE(leaves && HasRoom(waiting, workers, running, gone & ~(1u << i))) << trial;
    }
  }
  EXPECT_GT(evicted, 300);
}

}  // namespace
}  // namespace hooke
