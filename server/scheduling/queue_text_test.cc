// The reasons of groups that wait, as people read them.

#include "server/scheduling/queue_text.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000000);  // 13:46:40.

struct Case {
  const char* name;
  std::vector<WaitingGroup> queue;  // The last one's reason is checked.
  std::vector<FreeWorker> workers;
  std::string reason;
};

WaitingGroup Group(const char* job, uint32_t ranks, const char* site = "hpc") { return {job, 0, ranks, site}; }

FreeWorker Worker(const char* name, uint32_t slots, std::vector<Occupant> occupants) {
  FreeWorker worker = {name, "hpc", slots, slots};
  for (const Occupant& occupant : occupants) worker.free -= occupant.ranks;
  worker.occupants = std::move(occupants);
  return worker;
}

FreeWorker Together(const char* address, FreeWorker worker) {
  worker.address = address;
  worker.mpi = "openmpi";
  return worker;
}

FreeWorker Only(const char* job, FreeWorker worker) {
  worker.only_job = job;
  return worker;
}

FreeWorker Drained(FreeWorker worker) {
  worker.drained = true;
  return worker;
}

FreeWorker Ends(FreeWorker worker) {
  worker.drained = worker.ends = true;
  return worker;
}

FreeWorker WithGpus(uint32_t gpus, FreeWorker worker) {
  worker.gpus = gpus;
  return worker;
}

WaitingGroup Gpus(uint32_t per_rank, WaitingGroup group) {
  group.gpus_per_rank = per_rank;
  return group;
}

Occupant Known(const char* job, uint32_t ranks, int minutes) { return {job, ranks, absl::Minutes(minutes)}; }
Occupant Unknown(const char* job, uint32_t ranks) { return {job, ranks, std::nullopt}; }

const Case kCases[] = {
    {"one job, whose end is known",
     {Group("a-2", 8)},
     {Worker("w1", 8, {Known("mnist-3", 4, 33)})},
     "needs 8 slots at hpc; 4 free on w1; 4 more when mnist-3 ends, about 1970-01-12T14:20:00Z"},
    {"one job of unknown end",
     {Group("a-2", 8)},
     {Worker("w1", 8, {Unknown("mnist-3", 4)})},
     "needs 8 slots at hpc; 4 free on w1; 4 more when mnist-3 ends"},
    {"several jobs; no time if one of them has none",
     {Group("a-2", 4, "")},
     {Worker("w1", 4, {Unknown("c-3", 1), Known("b-1", 3, 1)})},
     "needs 4 slots; 0 free on w1 at hpc; 4 more when b-1 and c-3 end"},
    {"only those that it waits for",
     {Group("a-2", 2)},
     {Worker("w1", 4, {Known("late-1", 2, 9), Known("soon-1", 2, 1)})},
     "needs 2 slots at hpc; 0 free on w1; 2 more when soon-1 ends, about 1970-01-12T13:48:00Z"},
    {"more jobs than are named",
     {Group("a-2", 4)},
     {Worker("w1", 4, {Unknown("a-1", 1), Unknown("b-1", 1), Unknown("c-1", 1), Unknown("d-1", 1)})},
     "needs 4 slots at hpc; 0 free on w1; 4 more when 4 jobs end"},
    {"its own job",
     {{"a-2", 1, 2, "hpc"}},
     {Worker("w1", 2, {Unknown("a-2", 2)})},
     "needs 2 slots at hpc; 0 free on w1; 2 more when another of its groups ends"},
    {"the worker that is free first",
     {Group("a-2", 4)},
     {Worker("w1", 4, {Unknown("b-1", 1)}), Worker("w2", 4, {Known("c-1", 4, 3)})},
     "needs 4 slots at hpc; 0 free on w2; 4 more when c-1 ends, about 1970-01-12T13:50:00Z"},
    {"workers of other jobs",
     {Group("a-2", 2)},
     {Only("b-1", Worker("w1", 2, {})), Only("c-1", Worker("w2", 2, {}))},
     "needs 2 slots at hpc; all 2 workers there are only for other jobs"},
    {"a worker of its own",
     {Group("a-2", 2), Group("a-2", 2)},
     {Only("a-2", Worker("w1", 2, {})), Only("b-1", Worker("w2", 2, {}))},
     "needs 2 slots at hpc; 0 free on w1"},
    {"a group ahead gets the next slots",
     {Group("a-2", 4), Group("b-3", 2)},
     {Worker("w1", 4, {Unknown("c-1", 4)})},
     "needs 2 slots at hpc; 0 free on w1; group 0 of a-2 comes first"},
    {"free slots that are kept",
     {Group("a-2", 4), Group("b-3", 1)},
     {Worker("w1", 4, {Unknown("c-1", 2)})},
     "needs 1 slot at hpc; the 2 free on w1 are kept for group 0 of a-2"},
    {"a drained worker",
     {Group("a-2", 2)},
     {Drained(Worker("w1", 4, {}))},
     "needs 2 slots at hpc; the worker that could run it is drained"},
    {"drained workers",
     {Group("a-2", 2)},
     {Drained(Worker("w1", 4, {})), Drained(Worker("w2", 4, {}))},
     "needs 2 slots at hpc; all 2 workers that could run it are drained"},
    {"a worker that ends",
     {Group("a-2", 2)},
     {Ends(Worker("w1", 4, {}))},
     "needs 2 slots at hpc; the worker that could run it ends"},
    {"a worker that ends and a drained one",
     {Group("a-2", 2)},
     {Drained(Worker("w1", 4, {})), Ends(Worker("w2", 4, {}))},
     "needs 2 slots at hpc; all 2 workers that could run it are drained or end"},
    {"a worker of its own with another of its groups",
     {{"a-2", 1, 2, "hpc"}},
     {Only("a-2", Worker("w1", 2, {Unknown("a-2", 2)}))},
     "needs 2 slots at hpc; 0 free on w1"},
    {"the largest worker is too small",
     {Group("a-2", 8)},
     {Worker("w1", 2, {}), Worker("w2", 4, {}), Drained(Worker("w3", 8, {}))},
     "needs 8 slots at hpc; the largest worker that could run it, w2, has 4"},
    {"GPUs that nobody has",
     {Gpus(2, Group("a-2", 1))},
     {Worker("w1", 2, {}), WithGpus(7, Worker("w2", 4, {}))},
     "no worker of site hpc has slots with 2 GPUs each; see GPUS in hooke nodes, and --gpus and --slots of "
     "hooke-worker"},
    {"GPUs that are in use",
     {Gpus(1, Group("a-2", 2))},
     {Worker("w1", 2, {}), WithGpus(4, Worker("w2", 4, {Unknown("b-1", 3)}))},
     "needs 2 slots with 1 GPU each at hpc; 1 free on w2; 3 more when b-1 ends"},
    {"several workers together",
     {Group("a-2", 4)},
     {Together("10.0.0.1", Worker("w1", 2, {Known("b-1", 1, 3)})), Together("10.0.0.2", Worker("w2", 2, {}))},
     "needs 4 slots at hpc; 3 free on 2 workers of hpc together; 1 more when b-1 ends, about 1970-01-12T13:50:00Z"},
    {"workers that have enough slots, but do not go together",
     {Group("a-2", 6)},
     {Together("10.0.0.1", Worker("w1", 4, {})), Worker("w2", 2, {}), Together("10.0.0.1", Worker("w3", 1, {}))},
     "needs 6 slots at hpc; the largest worker that could run it, w1, has 4; w2 has no address for other nodes, "
     "w3 is on the same node"},
    {"many workers that do not go together",
     {Group("a-2", 8)},
     {Together("10.0.0.1", Worker("w1", 4, {})), Worker("w2", 1, {}), Worker("w3", 1, {}), Worker("w4", 1, {}),
      Worker("w5", 1, {})},
     "needs 8 slots at hpc; the largest worker that could run it, w1, has 4; w2 has no address for other nodes, "
     "w3 has no address for other nodes, w4 has no address for other nodes and 1 more"},
    {"the largest worker does not go with others",
     {Group("a-2", 6)},
     {Worker("w1", 4, {}), Together("10.0.0.2", Worker("w2", 2, {}))},
     "needs 6 slots at hpc; the largest worker that could run it, w1, has 4; it has no address for other nodes"},
    {"several workers that a group ahead waits for",
     {Group("a-2", 4), Group("b-3", 3)},
     {Together("10.0.0.1", Worker("w1", 2, {Unknown("b-1", 2)})), Together("10.0.0.2", Worker("w2", 2, {}))},
     "needs 3 slots at hpc; 2 free on 2 workers of hpc together; group 0 of a-2 comes first"},
};

// The reason names the slots that are missing, and which jobs must end first.
TEST(QueueTextTest, SaysWhatAGroupWaitsFor) {
  for (const Case& c : kCases) {
    const std::vector<Placement> placements = PlaceGroups(c.queue, c.workers, kNow);
    EXPECT_TRUE(placements.back().parts.empty()) << c.name;
    EXPECT_EQ(placements.back().reason, c.reason) << c.name;
  }
}

// Times far ahead are rounded to more.
TEST(QueueTextTest, RoundsTimes) {
  const auto reason = [](int minutes) {
    return PlaceGroups({Group("a-2", 1)}, {Worker("w1", 1, {Known("b-1", 1, minutes)})}, kNow)[0].reason;
  };
  const std::string before = "needs 1 slot at hpc; 0 free on w1; 1 more when b-1 ends, about 1970-01-12T";
  EXPECT_EQ(reason(1), absl::StrCat(before, "13:48:00Z"));
  EXPECT_EQ(reason(31), absl::StrCat(before, "14:20:00Z"));
  EXPECT_EQ(reason(300), absl::StrCat(before, "19:00:00Z"));
}

TEST(QueueTextTest, CountsThePositions) {
  EXPECT_EQ(QueuedText(1, "no worker is there"), "1st in the queue; no worker is there");
  const std::vector<std::pair<uint32_t, std::string>> all = {
      {2, "2nd"},   {3, "3rd"},   {4, "4th"},     {11, "11th"},   {12, "12th"},
      {13, "13th"}, {21, "21st"}, {102, "102nd"}, {111, "111th"}, {1003, "1003rd"}};
  for (const auto& [position, text] : all) {
    EXPECT_EQ(QueuedText(position, "x"), absl::StrCat(text, " in the queue; x"));
  }
}

}  // namespace
}  // namespace hooke
