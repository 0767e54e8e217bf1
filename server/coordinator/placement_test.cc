#include "server/coordinator/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

struct Case {
  const char* name;
  std::vector<WaitingGroup> queue;
  std::vector<FreeWorker> workers;
  std::vector<std::string> placed;   // A worker's name, or empty.
  std::vector<std::string> reasons;  // Why a group waits; "" if it is placed.
};

WaitingGroup Group(const char* job, uint32_t group, uint32_t ranks, const char* site = "") {
  return {job, group, ranks, site, true, ""};
}

WaitingGroup Command(WaitingGroup group) {
  group.command = true;
  return group;
}

WaitingGroup Later(WaitingGroup group, const char* why) {
  group.due = false;
  group.wait_why = why;
  return group;
}

const Case kCases[] = {
    {"no worker", {Group("a-1", 0, 2)}, {}, {""}, {"no worker has joined"}},
    {"one each",
     {Group("a-1", 0, 2), Group("a-1", 1, 2)},
     {{"w1", "hpc", 2, 2}, {"w2", "hpc", 2, 2}},
     {"w1", "w2"},
     {"", ""}},
    {"two on one", {Group("a-1", 0, 2), Group("a-1", 1, 2)}, {{"w1", "hpc", 4, 4}}, {"w1", "w1"}, {"", ""}},
    {"best fit leaves the large worker free",
     {Group("a-1", 0, 2)},
     {{"big", "hpc", 8, 8}, {"small", "hpc", 2, 2}},
     {"small"},
     {""}},
    {"one slot short",
     {Group("a-1", 0, 2)},
     {{"w1", "hpc", 2, 1}},
     {""},
     {"2 ranks needed, worker w1 at site hpc has 1 free slot"}},
    {"not at two workers together",
     {Group("a-1", 0, 4)},
     {{"w1", "hpc", 2, 2}, {"w2", "hpc", 2, 2}},
     {""},
     {"4 ranks needed, worker w1 at site hpc has 2 free slots"}},
    {"its site", {Group("a-1", 0, 1, "cloud")}, {{"w1", "hpc", 2, 2}, {"w2", "cloud", 2, 2}}, {"w2"}, {""}},
    {"site without worker",
     {Group("a-1", 0, 1, "cloud")},
     {{"w1", "hpc", 2, 2}},
     {""},
     {"no worker of site cloud has joined"}},
    {"not overtaken by a later, smaller one",
     {Group("a-1", 0, 4), Group("b-2", 0, 1)},
     {{"w1", "hpc", 4, 3}},
     {"", ""},
     {"4 ranks needed, worker w1 at site hpc has 3 free slots",
      "1 rank needed, and the free slots of worker w1 are kept for group 0 of a-1"}},
    {"a later one may have what the first cannot use",
     {Group("a-1", 0, 4), Group("b-2", 0, 1)},
     {{"w1", "hpc", 4, 3}, {"w2", "hpc", 2, 2}},
     {"", "w2"},
     {"4 ranks needed, worker w1 at site hpc has 3 free slots", ""}},
    {"a command where it is allowed",
     {Command(Group("a-1", 0, 1)), Command(Group("a-1", 1, 1))},
     {{"w1", "hpc", 1, 1}, {"w2", "hpc", 2, 2, true}},
     {"w2", "w2"},
     {"", ""}},
    {"a command that is allowed nowhere keeps no slots",
     {Command(Group("a-1", 0, 2)), Group("b-2", 0, 2)},
     {{"w1", "hpc", 2, 2}},
     {"", "w1"},
     {"no worker allows commands; start hooke-worker with --allow-commands", ""}},
    {"a command that is not allowed at its site",
     {Command(Group("a-1", 0, 2, "cloud"))},
     {{"w1", "cloud", 2, 2}, {"w2", "hpc", 2, 2, true}},
     {""},
     {"no worker of site cloud allows commands; start hooke-worker with --allow-commands"}},
    {"a command waits for the worker that allows it",
     {Command(Group("a-1", 0, 2))},
     {{"w1", "hpc", 8, 8}, {"w2", "hpc", 2, 1, true}},
     {""},
     {"2 ranks needed, worker w2 at site hpc has 1 free slot"}},
    {"slots are kept for a next try",
     {Later(Group("a-1", 0, 2), "starts again in 1s"), Group("b-2", 0, 1)},
     {{"w1", "hpc", 2, 2}},
     {"", ""},
     {"starts again in 1s", "1 rank needed, worker w1 at site hpc has 0 free slots"}},
};

// Groups go, in order of submission, to the worker that fits best. A group that waits gets a reason.
TEST(PlacementTest, PlacesOrSaysWhyNot) {
  for (const Case& c : kCases) {
    const std::vector<Placement> placements = PlaceGroups(c.queue, c.workers);
    ASSERT_EQ(placements.size(), c.queue.size()) << c.name;
    for (size_t i = 0; i < placements.size(); ++i) {
      EXPECT_EQ(placements[i].worker, c.placed[i]) << c.name << " " << i;
      EXPECT_FALSE(placements[i].reason.empty()) << c.name << " " << i;
      if (c.placed[i].empty()) {
        EXPECT_EQ(placements[i].reason, c.reasons[i]) << c.name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace hooke
