// The order of jobs of different owners, against an obvious version and in virtual time, and the limits of owners.

#include "server/scheduling/fair_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Uses = std::map<std::string, double>;

std::vector<uint64_t> Numbers(const std::vector<QueuedJob>& jobs, const Uses& uses) {
  std::vector<uint64_t> numbers;
  for (const size_t index : FairOrder(jobs, uses)) numbers.push_back(jobs[index].number);
  return numbers;
}

TEST(FairShareTest, PrioritiesThenStartedOnesThenTheLeastUse) {
  EXPECT_THAT(Numbers({{1, 0, "a", 4}, {2, 5, "a", 4}, {3, 0, "b", 4}}, {{"a", 100}}), ElementsAre(2, 3, 1));
  EXPECT_THAT(Numbers({{1, 0, "b", 4}, {2, 0, "a", 4, true}}, {{"a", 100}}), ElementsAre(2, 1));
  EXPECT_THAT(Numbers({{1, 0, "", 4}, {2, 0, "", 9}, {3, 0, "", 1}}, {{"", 100}}), ElementsAre(1, 2, 3));
}

// The jobs ahead count as use, so owners take turns, in proportion to what their jobs need.
TEST(FairShareTest, OwnersTakeTurns) {
  const std::vector<QueuedJob> jobs = {{1, 0, "a", 4}, {2, 0, "a", 4}, {3, 0, "a", 4},
                                       {4, 0, "b", 2}, {5, 0, "b", 2}, {6, 0, "b", 2}};
  EXPECT_THAT(Numbers(jobs, {}), ElementsAre(1, 4, 5, 2, 6, 3));
  EXPECT_THAT(Numbers(jobs, {{"a", 3}}), ElementsAre(4, 5, 1, 6, 2, 3));
}

// The slow, obvious version: looks at all jobs that are left for each place.
std::vector<uint64_t> ObviousOrder(std::vector<QueuedJob> jobs, Uses uses) {
  std::vector<uint64_t> order;
  while (!jobs.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < jobs.size(); ++i) {
      const QueuedJob& a = jobs[i];
      const QueuedJob& b = jobs[best];
      bool before = a.number < b.number;
      if (a.priority != b.priority) {
        before = a.priority > b.priority;
      } else if (a.started != b.started) {
        before = a.started;
      } else if (!a.started && uses[a.owner] != uses[b.owner]) {
        before = uses[a.owner] < uses[b.owner];
      }
      if (before) best = i;
    }
    order.push_back(jobs[best].number);
    uses[jobs[best].owner] += static_cast<double>(jobs[best].slots);
    jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return order;
}

TEST(FairShareTest, EqualsTheObviousOrder) {
  std::mt19937 random(1);
  const auto below = [&random](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<QueuedJob> jobs;
    for (uint32_t i = 0; i < 1 + below(12); ++i) {
      jobs.push_back({i + 1, below(3), std::string(1, static_cast<char>('a' + below(3))), below(5), below(4) == 0});
    }
    std::shuffle(jobs.begin(), jobs.end(), random);
    const Uses uses = {{"a", below(10)}, {"b", below(10)}};
    ASSERT_EQ(Numbers(jobs, uses), ObviousOrder(jobs, uses)) << trial;
  }
}

// In virtual time, on a cluster of 12 slots: one owner always has ten times as many waiting jobs as each of the other
// two. Yet each owner gets a third of the cluster.
TEST(FairShareTest, EachOwnerGetsItsShare) {
  const absl::Duration half_life = absl::Hours(2);
  const std::vector<std::string> owners = {"a", "b", "c"};
  std::map<std::string, double> slot_seconds, total;
  struct Run {
    std::string owner;
    uint64_t slots;
    int ends;
  };
  std::vector<Run> runs;
  std::vector<QueuedJob> queue;
  uint64_t number = 0;
  std::mt19937 random(3);
  for (int minute = 0; minute < 3000; ++minute) {
    for (const std::string& owner : owners) {
      size_t waiting = 0;
      for (const QueuedJob& job : queue) waiting += job.owner == owner ? 1 : 0;
      for (; waiting < (owner == "a" ? 20u : 2u); ++waiting) queue.push_back({++number, 0, owner, 1 + random() % 4});
    }
    runs.erase(std::remove_if(runs.begin(), runs.end(), [&](const Run& run) { return run.ends <= minute; }),
               runs.end());
    std::map<std::string, uint64_t> now;
    uint64_t used = 0;
    for (const Run& run : runs) now[run.owner] += run.slots, used += run.slots;
    Uses uses;
    for (const std::string& owner : owners) {
      uses[owner] = static_cast<double>(now[owner]) + MeanSlots(slot_seconds[owner], half_life);
    }
    std::set<uint64_t> started;
    for (const size_t index : FairOrder(queue, uses)) {
      const QueuedJob& job = queue[index];
      if (used + job.slots > 12) break;
      used += job.slots;
      now[job.owner] += job.slots;
      runs.push_back({job.owner, job.slots, minute + 20 + static_cast<int>(random() % 80)});
      started.insert(job.number);
    }
    queue.erase(
        std::remove_if(queue.begin(), queue.end(), [&](const QueuedJob& job) { return started.count(job.number) > 0; }),
        queue.end());
    for (const std::string& owner : owners) {
      slot_seconds[owner] = SlotSecondsAfter(slot_seconds[owner], now[owner], absl::Minutes(1), half_life);
      total[owner] += static_cast<double>(now[owner]);
    }
  }
  const double all = total["a"] + total["b"] + total["c"];
  for (const std::string& owner : owners) EXPECT_NEAR(total[owner] / all, 1.0 / 3, 0.02) << owner;
}

TEST(FairShareTest, OldUseCountsLess) {
  EXPECT_DOUBLE_EQ(SlotSecondsAfter(1000, 0, absl::Hours(1), absl::Hours(1)), 500);
  EXPECT_DOUBLE_EQ(SlotSecondsAfter(1000, 5, absl::ZeroDuration(), absl::Hours(1)), 1000);
  double small_steps = 0;
  for (int i = 0; i < 600; ++i) small_steps = SlotSecondsAfter(small_steps, 8, absl::Seconds(1), absl::Minutes(5));
  EXPECT_NEAR(small_steps, SlotSecondsAfter(0, 8, absl::Minutes(10), absl::Minutes(5)), 1e-6);
  EXPECT_NEAR(MeanSlots(SlotSecondsAfter(0, 8, absl::Hours(1000), absl::Hours(1)), absl::Hours(1)), 8, 1e-9);
}

TEST(FairShareTest, LimitsOfOwners) {
  const OwnerSlots slots = *ParseOwnerSlots("8,anna=16,ben=0");
  EXPECT_EQ(slots.LimitOf("carl"), 8u);
  EXPECT_EQ(slots.LimitOf("anna"), 16u);
  EXPECT_EQ(slots.LimitOf("ben"), 0u);
  EXPECT_EQ(ParseOwnerSlots("anna=4")->LimitOf("carl"), std::nullopt);
  EXPECT_EQ(ParseOwnerSlots("")->LimitOf("carl"), std::nullopt);
  for (const char* wrong : {"x", "-1", "8,", "anna=", "=4", "a b=4", "99999999999", "1.5"}) {
    EXPECT_THAT(std::string(ParseOwnerSlots(wrong).status().message()),
                HasSubstr("is no limit, allowed is a list like"))
        << wrong;
  }
  EXPECT_THAT(std::string(ParseOwnerSlots("8,9").status().message()), HasSubstr("\"9\" is given twice"));
  EXPECT_THAT(std::string(ParseOwnerSlots("a=8,a=9").status().message()), HasSubstr("\"a=9\" is given twice"));
}

}  // namespace
}  // namespace hooke
