#include "server/scheduling/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hooke {
namespace {

struct Case {
  const char* name;
  std::vector<WaitingGroup> queue;
  std::vector<FreeWorker> workers;
  // For each group: a worker's name, or "w1:2 w2:2" if its ranks are on several workers, or "" if the group waits.
  std::vector<std::string> placed;
  std::vector<std::string> reasons;  // For each group: why it waits; "" if it is placed.
};

WaitingGroup Group(const char* job, uint32_t group, uint32_t ranks, const char* site = "") {
  return {job, group, ranks, site, true, ""};
}

WaitingGroup Command(WaitingGroup group) {
  group.command = true;
  return group;
}

// Returns a worker that takes part in groups of several workers.
FreeWorker Node(const char* name, uint32_t slots, uint32_t free, const char* site = "hpc",
                const char* mpi = "openmpi") {
  return {name, site, slots, free, false, absl::StrCat("10.0.0.", name), mpi};
}

FreeWorker Version(const char* version, FreeWorker worker) {
  worker.version = version;
  return worker;
}

FreeWorker At(const char* address, FreeWorker worker) {
  worker.address = address;
  return worker;
}

FreeWorker Avoided(FreeWorker worker) {
  worker.avoided = true;
  return worker;
}

FreeWorker Drained(FreeWorker worker) {
  worker.drained = true;
  return worker;
}

std::string Text(const Placement& placement) {
  if (placement.parts.size() == 1) return placement.parts[0].worker;
  return absl::StrJoin(placement.parts, " ", [](std::string* text, const PlacedPart& part) {
    absl::StrAppend(text, part.worker, ":", part.ranks);
  });
}

WaitingGroup Later(WaitingGroup group, const char* why) {
  group.due = false;
  group.wait_why = why;
  return group;
}

const Case kCases[] = {
    {"no worker", {Group("a-1", 0, 2)}, {}, {""}, {"no worker is there"}},
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
    {"one slot short", {Group("a-1", 0, 2)}, {{"w1", "hpc", 2, 1}}, {""}, {"needs 2 slots; 1 free on w1 at hpc"}},
    {"not at two workers together",
     {Group("a-1", 0, 4)},
     {{"w1", "hpc", 2, 2}, {"w2", "hpc", 2, 2}},
     {""},
     {"needs 4 slots; the largest worker that could run it, w1, has 2; it has no address for other nodes"}},
    {"its site", {Group("a-1", 0, 1, "cloud")}, {{"w1", "hpc", 2, 2}, {"w2", "cloud", 2, 2}}, {"w2"}, {""}},
    {"site without worker",
     {Group("a-1", 0, 1, "cloud")},
     {{"w1", "hpc", 2, 2}},
     {""},
     {"no worker of site cloud is there"}},
    {"not overtaken by a later, smaller one",
     {Group("a-1", 0, 4), Group("b-2", 0, 1)},
     {{"w1", "hpc", 4, 3}},
     {"", ""},
     {"needs 4 slots; 3 free on w1 at hpc", "needs 1 slot; the 3 free on w1 at hpc are kept for group 0 of a-1"}},
    {"a later one may have what the first cannot use",
     {Group("a-1", 0, 4), Group("b-2", 0, 1)},
     {{"w1", "hpc", 4, 3}, {"w2", "hpc", 2, 2}},
     {"", "w2"},
     {"needs 4 slots; 3 free on w1 at hpc", ""}},
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
     {"needs 2 slots; 1 free on w2 at hpc"}},
    {"slots are kept for a next try",
     {Later(Group("a-1", 0, 2), "starts again in 1s"), Group("b-2", 0, 1)},
     {{"w1", "hpc", 2, 2}},
     {"", ""},
     {"starts again in 1s", "needs 1 slot; 0 free on w1 at hpc"}},
    {"one worker before several",
     {Group("a-1", 0, 4)},
     {Node("1", 2, 2), Node("2", 2, 2), Node("3", 8, 4)},
     {"3"},
     {""}},
    {"several, if none is large enough", {Group("a-1", 0, 4)}, {Node("1", 2, 2), Node("2", 2, 2)}, {"1:2 2:2"}, {""}},
    {"as few as possible, evenly, the largest leads",
     {Group("a-1", 0, 8)},
     {Node("1", 2, 2), Node("2", 6, 6), Node("3", 5, 5)},
     {"2:4 3:4"},
     {""}},
    {"small workers are filled", {Group("a-1", 0, 7)}, {Node("1", 2, 2), Node("2", 6, 6)}, {"2:5 1:2"}, {""}},
    {"slots are counted on each",
     {Group("a-1", 0, 4), Group("b-2", 0, 2)},
     {Node("1", 3, 3), Node("2", 3, 3)},
     {"1:2 2:2", "1:1 2:1"},
     {"", ""}},
    {"all or none, and nobody overtakes",
     {Group("a-1", 0, 4), Group("b-2", 0, 1)},
     {Node("1", 2, 2), Node("2", 2, 1)},
     {"", ""},
     {"needs 4 slots; 3 free on 2 workers of hpc together",
      "needs 1 slot; the 1 free on 2 at hpc is kept for group 0 of a-1"}},
    {"not over two sites",
     {Group("a-1", 0, 4)},
     {Node("1", 2, 2), Node("2", 2, 2, "cloud")},
     {""},
     {"needs 4 slots; the largest worker that could run it, 1, has 2"}},
    {"not over two MPI libraries",
     {Group("a-1", 0, 4)},
     {Node("1", 2, 2), Node("2", 2, 2, "hpc", "mpich")},
     {""},
     {"needs 4 slots; the largest worker that could run it, 1, has 2; 2 has the MPI library mpich, not openmpi"}},
    {"not over two versions of Hooke",
     {Group("a-1", 0, 4)},
     {Version("0.1.0", Node("1", 2, 2)), Version("0.2.0", Node("2", 2, 2)), Version("0.1.0", Node("3", 1, 1))},
     {""},
     {"needs 4 slots; the largest worker that could run it, 1, has 2; 2 has Hooke 0.2.0, not 0.1.0"}},
    {"two workers of one node do not count as two nodes",
     {Group("a-1", 0, 4)},
     {At("10.0.0.1", Node("1", 2, 2)), At("10.0.0.1", Node("2", 2, 2)), Node("3", 2, 2)},
     {"1:2 3:2"},
     {""}},
    {"a command over several that allow it",
     {Command(Group("a-1", 0, 2))},
     {Node("1", 1, 1), Node("2", 1, 1)},
     {""},
     {"no worker allows commands; start hooke-worker with --allow-commands"}},
    {"slots on several are kept for a next try",
     {Later(Group("a-1", 0, 4), "starts again in 1s"), Group("b-2", 0, 1)},
     {Node("1", 2, 2), Node("2", 2, 2)},
     {"", ""},
     {"starts again in 1s", "needs 1 slot; 0 free on 1 at hpc"}},
    {"another one before an avoided one",
     {Group("a-1", 0, 2), Group("b-2", 0, 2)},
     {Avoided(Node("1", 2, 2)), Node("2", 8, 2)},
     {"2", "1"},
     {"", ""}},
    {"several others before an avoided one",
     {Group("a-1", 0, 4)},
     {Avoided(Node("1", 4, 4)), Node("2", 2, 2), Node("3", 2, 2)},
     {"2:2 3:2"},
     {""}},
    {"an avoided one beside another, if nothing else is large enough",
     {Group("a-1", 0, 4)},
     {Avoided(Node("1", 2, 2)), Node("2", 2, 2)},
     {"1:2 2:2"},
     {""}},
    {"not on a drained one, and nobody waits for it",
     {Group("a-1", 0, 4), Group("b-2", 0, 2)},
     {Drained(Node("1", 4, 4)), Node("2", 4, 2, "cloud"), Drained(Node("3", 2, 2))},
     {"", ""},
     {"needs 4 slots; 2 free on 2 at cloud", "needs 2 slots; the 2 free on 2 at cloud are kept for group 0 of a-1"}},
};

// In order of submission, each group goes to the worker that fits best, or to several workers that together have room.
// A group that waits gets a reason.
TEST(PlacementTest, PlacesOrSaysWhyNot) {
  for (const Case& c : kCases) {
    const std::vector<Placement> placements = PlaceGroups(c.queue, c.workers, absl::UnixEpoch());
    ASSERT_EQ(placements.size(), c.queue.size()) << c.name;
    for (size_t i = 0; i < placements.size(); ++i) {
      EXPECT_EQ(Text(placements[i]), c.placed[i]) << c.name << " " << i;
      EXPECT_FALSE(placements[i].reason.empty()) << c.name << " " << i;
      if (c.placed[i].empty()) {
        EXPECT_EQ(placements[i].reason, c.reasons[i]) << c.name << " " << i;
      }
    }
  }
}

// The most ranks that a job may have are placed on few large workers, or on as many small ones as there are ranks. With
// one slot less the group waits, and keeps all of them.
TEST(PlacementTest, PlacesTheMostRanks) {
  constexpr uint32_t kRanks = 16384;
  for (uint32_t slots : {1, 16}) {
    std::vector<FreeWorker> workers;
    for (uint32_t i = 0; i < kRanks / slots; ++i) {
      workers.push_back(At(absl::StrCat("10.0.", i / 256, ".", i % 256).c_str(), Node("", slots, slots)));
      workers.back().name = absl::StrCat("n", i);
    }
    const std::vector<WaitingGroup> queue = {Group("a-1", 0, kRanks), Group("b-2", 0, 1)};
    const std::vector<Placement> placements = PlaceGroups(queue, workers, absl::UnixEpoch());
    ASSERT_EQ(placements[0].parts.size(), workers.size());
    for (const PlacedPart& part : placements[0].parts) ASSERT_EQ(part.ranks, slots);
    EXPECT_TRUE(placements[1].parts.empty());
    --workers.back().free;
    const std::vector<Placement> waiting = PlaceGroups(queue, workers, absl::UnixEpoch());
    EXPECT_TRUE(waiting[0].parts.empty());
    EXPECT_TRUE(waiting[1].parts.empty());
    EXPECT_THAT(waiting[0].reason, testing::HasSubstr(absl::StrCat("; ", kRanks - 1, " free on ", workers.size(),
                                                                   " workers of hpc together")));
  }
}

}  // namespace
}  // namespace hooke
