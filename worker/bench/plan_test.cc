#include "worker/bench/plan.h"

#include <gtest/gtest.h>

#include <set>

namespace hooke {
namespace {

Topology TwoNodes() {
  Topology topology = OneNode(4);
  topology.nodes = 2;
  topology.smallest_node = topology.largest_node = 2;
  return topology;
}

// Every cell begins with Hooke's default and has no choice twice. Each candidate's choice is the one that its tuning
// gives.
TEST(PlanTest, CandidatesAreTheDefaultAndItsRivals) {
  for (const Topology& topology : {OneNode(2), OneNode(3), TwoNodes()}) {
    for (const PlannedCell& cell : PlanCells(topology, uint64_t{64} << 20)) {
      const Workload workload = {cell.operation, cell.bytes, cell.shared};
      ASSERT_FALSE(cell.candidates.empty());
      EXPECT_TRUE(SameWay(cell.candidates[0].choice, ChooseAlgorithm(topology, workload)));
      for (size_t i = 0; i < cell.candidates.size(); ++i) {
        const Candidate& one = cell.candidates[i];
        EXPECT_TRUE(SameWay(one.choice, ChooseAlgorithm(topology, workload, Ways().at(one.way))));
        for (size_t j = 0; j < i; ++j) EXPECT_FALSE(SameWay(one.choice, cell.candidates[j].choice));
      }
    }
  }
}

// The plan has every operation from 4 bytes to the largest size. With private values every cell has several candidates.
TEST(PlanTest, CoversOperationsAndSizes) {
  std::set<Operation> operations;
  std::set<uint64_t> sizes;
  for (const PlannedCell& cell : PlanCells(OneNode(2), uint64_t{64} << 20)) {
    operations.insert(cell.operation);
    sizes.insert(cell.bytes);
    EXPECT_GE(cell.candidates.size(), cell.shared ? 1u : 2u) << NameOf(cell.operation) << " " << cell.bytes;
  }
  EXPECT_EQ(operations.size(), 5u);
  EXPECT_EQ(*sizes.begin(), 4u);
  EXPECT_EQ(*sizes.rbegin(), uint64_t{64} << 20);
  EXPECT_EQ(sizes.size(), 13u);
}

// The plan of a single rank is empty, because there is nothing to choose. Without shared memory the plan has no values
// in an arena.
TEST(PlanTest, WhatIsNotThereIsNotMeasured) {
  EXPECT_TRUE(PlanCells(OneNode(1), 1024).empty());
  Topology topology = OneNode(2);
  topology.shared_memory = false;
  for (const PlannedCell& cell : PlanCells(topology, 1024)) EXPECT_FALSE(cell.shared);
}

}  // namespace
}  // namespace hooke
