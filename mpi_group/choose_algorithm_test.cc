#include "mpi_group/choose_algorithm.h"

#include <gtest/gtest.h>

#include <vector>

namespace hooke {
namespace {

constexpr uint64_t kMany = 6600000;

// A topology of `nodes` nodes: the last has `largest` ranks, the others `smallest`.
Topology Nodes(int nodes, int smallest, int largest) {
  return {smallest * (nodes - 1) + largest, nodes, smallest, largest, true, false};
}

Topology WithoutSharedMemory(Topology topology) {
  topology.shared_memory = false;
  return topology;
}

struct Row {
  Topology topology;
  Workload workload;
  Algorithm algorithm;
};

void ExpectChoices(const std::vector<Row>& table) {
  for (const auto& row : table) {
    const Choice choice = ChooseAlgorithm(row.topology, row.workload);
    EXPECT_EQ(choice.algorithm, row.algorithm)
        << NameOf(choice.algorithm) << " instead of " << NameOf(row.algorithm) << " for "
        << NameOf(row.workload.operation) << " of " << row.workload.bytes << " bytes on " << row.topology.ranks
        << " ranks of " << row.topology.nodes;
    EXPECT_FALSE(choice.reason.empty());
  }
}

// The default rules make the choices in this table.
TEST(ChooseAlgorithmTest, Defaults) {
  ExpectChoices({
      {OneNode(1), {Operation::kAllReduce, kMany, true}, Algorithm::kNothing},
      {OneNode(1), {Operation::kBarrier, 0, false}, Algorithm::kNothing},
      {OneNode(2), {Operation::kAllReduce, 0, false}, Algorithm::kNothing},
      {OneNode(2), {Operation::kBroadcast, 0, false}, Algorithm::kNothing},
      {OneNode(2), {Operation::kBarrier, 0, false}, Algorithm::kStaged},
      {Nodes(2, 1, 1), {Operation::kBarrier, 0, false}, Algorithm::kDissemination},
      {Nodes(2, 1, 2), {Operation::kBarrier, 0, false}, Algorithm::kTwoLevel},
      {WithoutSharedMemory(Nodes(2, 2, 2)), {Operation::kBarrier, 0, false}, Algorithm::kDissemination},
      {OneNode(2), {Operation::kAllReduce, 4, false}, Algorithm::kStaged},
      {OneNode(2), {Operation::kAllReduce, 4, true}, Algorithm::kStaged},
      {OneNode(2), {Operation::kAllReduce, kMany, true}, Algorithm::kArena},
      {OneNode(2), {Operation::kAllReduce, kMany, false}, Algorithm::kStaged},
      {OneNode(8), {Operation::kAllReduce, 4, false}, Algorithm::kStaged},
      {OneNode(8), {Operation::kAllReduce, kMany, false}, Algorithm::kStagedSlices},
      {OneNode(8), {Operation::kAllReduce, kMany, true}, Algorithm::kArena},
      {OneNode(8), {Operation::kAllGather, kMany, true}, Algorithm::kArena},
      {OneNode(8), {Operation::kAllGather, kMany, false}, Algorithm::kStaged},
      {OneNode(8), {Operation::kReduceScatter, kMany, false}, Algorithm::kStaged},
      {OneNode(8), {Operation::kBroadcast, kMany, true}, Algorithm::kArena},
      {OneNode(8), {Operation::kReduce, kMany, false}, Algorithm::kStaged},
      {WithoutSharedMemory(OneNode(2)), {Operation::kAllReduce, kMany, false}, Algorithm::kRing},
      {WithoutSharedMemory(OneNode(4)), {Operation::kAllReduce, 4, false}, Algorithm::kRecursiveDoubling},
      {Nodes(4, 1, 1), {Operation::kAllReduce, 4, false}, Algorithm::kRecursiveDoubling},
      {Nodes(4, 1, 1), {Operation::kAllReduce, 100000, false}, Algorithm::kHalvingDoubling},
      {Nodes(4, 1, 1), {Operation::kAllReduce, kMany, false}, Algorithm::kRing},
      {Nodes(4, 1, 1), {Operation::kAllReduce, kMany, true}, Algorithm::kRing},
      {Nodes(2, 1, 3), {Operation::kAllReduce, kMany, true}, Algorithm::kTwoLevel},
      {Nodes(2, 2, 2), {Operation::kAllReduce, 4, false}, Algorithm::kTwoLevel},
      // All-reduces that round 16-bit sums only once take two levels only if every node has several ranks.
      {Nodes(2, 2, 2), {Operation::kAllReduce, 4, false, true}, Algorithm::kTwoLevel},
      {Nodes(2, 2, 2), {Operation::kAllReduce, kMany, false, true}, Algorithm::kTwoLevel},
      {Nodes(3, 2, 5), {Operation::kAllReduce, kMany, true, true}, Algorithm::kTwoLevel},
      {Nodes(2, 1, 3), {Operation::kAllReduce, kMany, true, true}, Algorithm::kPairwise},
      // A ring of more than two ranks would round them at every rank, so they go pairwise.
      {Nodes(2, 1, 1), {Operation::kAllReduce, kMany, true, true}, Algorithm::kRing},
      {Nodes(4, 1, 1), {Operation::kAllReduce, kMany, true, true}, Algorithm::kPairwise},
      {WithoutSharedMemory(Nodes(2, 2, 2)), {Operation::kAllReduce, kMany, false, true}, Algorithm::kPairwise},
      {Nodes(2, 2, 2), {Operation::kReduce, kMany, false, false}, Algorithm::kTwoLevel},
      {Nodes(2, 2, 2), {Operation::kReduce, kMany, false, true}, Algorithm::kChain},
      {Nodes(2, 2, 2), {Operation::kBroadcast, kMany, false}, Algorithm::kTwoLevel},
      {Nodes(4, 1, 1), {Operation::kBroadcast, kMany, false}, Algorithm::kChain},
      {Nodes(4, 1, 1), {Operation::kBroadcast, 4, false}, Algorithm::kBinomialTree},
      {Nodes(4, 1, 1), {Operation::kReduce, kMany, false}, Algorithm::kChain},
      {Nodes(2, 2, 2), {Operation::kReduceScatter, kMany, true}, Algorithm::kTwoLevel},
      {Nodes(2, 2, 2), {Operation::kReduceScatter, kMany, true, true}, Algorithm::kPairwise},
      {Nodes(2, 1, 2), {Operation::kReduceScatter, kMany, true, true}, Algorithm::kPairwise},
      {Nodes(2, 2, 2), {Operation::kReduceScatter, 4, true, true}, Algorithm::kPairwise},
      {Nodes(2, 1, 2), {Operation::kAllGather, kMany, false}, Algorithm::kTwoLevel},
      {Nodes(4, 1, 1), {Operation::kAllGather, kMany, true}, Algorithm::kRing},
      {Nodes(2, 2, 2), {Operation::kAllGather, 4, true}, Algorithm::kPairwise},
      // With more than 32 ranks small parts take two levels where these are possible. So no rank sends to each other
      // one.
      {Nodes(4, 8, 8), {Operation::kAllGather, 4, true}, Algorithm::kPairwise},
      {Nodes(4, 9, 9), {Operation::kAllGather, 4, true}, Algorithm::kTwoLevel},
      {Nodes(4, 9, 9), {Operation::kReduceScatter, 4, false}, Algorithm::kTwoLevel},
      {Nodes(4, 9, 9), {Operation::kReduceScatter, 4, false, true}, Algorithm::kPairwise},
      {Nodes(40, 1, 1), {Operation::kAllGather, 4, true}, Algorithm::kPairwise},
  });
}

// If the number of ranks is no power of two, halving-doubling takes two more steps, in which some ranks send or receive
// all their values. Between nodes a ring takes its place for such numbers up to 15.
TEST(ChooseAlgorithmTest, DefaultsForNoPowerOfTwo) {
  ExpectChoices({
      {Nodes(2, 1, 1), {Operation::kAllReduce, 100000, false}, Algorithm::kHalvingDoubling},
      {Nodes(3, 1, 1), {Operation::kAllReduce, 16384, false}, Algorithm::kRecursiveDoubling},
      {Nodes(3, 1, 1), {Operation::kAllReduce, 16388, false}, Algorithm::kRing},
      {Nodes(3, 1, 1), {Operation::kAllReduce, 262144, true}, Algorithm::kRing},
      {Nodes(3, 1, 1), {Operation::kAllReduce, 100000, false, true}, Algorithm::kPairwise},
      {WithoutSharedMemory(Nodes(3, 2, 2)), {Operation::kAllReduce, 100000, false, true}, Algorithm::kPairwise},
      {WithoutSharedMemory(Nodes(3, 2, 2)), {Operation::kAllReduce, 100000, false}, Algorithm::kRing},
      {WithoutSharedMemory(OneNode(3)), {Operation::kAllReduce, 100000, false}, Algorithm::kHalvingDoubling},
      {Nodes(8, 1, 1), {Operation::kAllReduce, 100000, false}, Algorithm::kHalvingDoubling},
      {Nodes(15, 1, 1), {Operation::kAllReduce, 100000, false}, Algorithm::kRing},
      {Nodes(16, 1, 1), {Operation::kAllReduce, 100000, false}, Algorithm::kHalvingDoubling},
      {Nodes(17, 1, 1), {Operation::kAllReduce, 100000, false}, Algorithm::kHalvingDoubling},
  });
}

// One rank on each of `nodes` nodes.
Topology Alone(int nodes) { return Nodes(nodes, 1, 1); }

// For more than 16 ranks that take part between nodes the model decides, by ranks and bytes. Parts of a ring would be
// short where there are many ranks: 3 KB each for 25 MB by 8,192 ranks.
TEST(ChooseAlgorithmTest, ManyRanks) {
  constexpr uint64_t kMi = 1 << 20;
  ExpectChoices({
      {Alone(32), {Operation::kAllReduce, 4096}, Algorithm::kRecursiveDoubling},
      {Alone(32), {Operation::kAllReduce, kMi}, Algorithm::kHalvingDoubling},
      {Alone(32), {Operation::kAllReduce, 4 * kMi}, Algorithm::kRing},
      {Alone(100), {Operation::kAllReduce, kMi}, Algorithm::kHalvingDoubling},
      {Alone(100), {Operation::kAllReduce, 25000000}, Algorithm::kRing},
      {Alone(128), {Operation::kAllReduce, 4 * kMi}, Algorithm::kHalvingDoubling},
      {Alone(128), {Operation::kAllReduce, 25000000}, Algorithm::kRing},
      {Alone(1024), {Operation::kAllReduce, 4096}, Algorithm::kRecursiveDoubling},
      {Alone(1024), {Operation::kAllReduce, 25000000}, Algorithm::kHalvingDoubling},
      {Alone(1024), {Operation::kAllReduce, 1024 * kMi}, Algorithm::kRing},
      {Alone(8192), {Operation::kAllReduce, 4096}, Algorithm::kRecursiveDoubling},
      {Alone(8192), {Operation::kAllReduce, 25000000}, Algorithm::kHalvingDoubling},
      {Alone(8192), {Operation::kAllReduce, 25000000, true}, Algorithm::kHalvingDoubling},
      {Alone(8192), {Operation::kAllReduce, 25000000, false, true}, Algorithm::kHalvingDoubling},
      {Alone(16384), {Operation::kAllReduce, 25000000}, Algorithm::kHalvingDoubling},
      {WithoutSharedMemory(Nodes(512, 16, 16)), {Operation::kAllReduce, 25000000}, Algorithm::kHalvingDoubling},
      // As between few nodes, the choice is two-level. The model decides only what runs between the nodes.
      {Nodes(512, 16, 16), {Operation::kAllReduce, 25000000}, Algorithm::kTwoLevel},
      {OneNode(1024), {Operation::kAllReduce, 25000000}, Algorithm::kStagedSlices},
      // Other operations are chosen as between few ranks.
      {Alone(1024), {Operation::kAllGather, 25000000}, Algorithm::kRing},
  });
}

// On up to 16 nodes whose ranks share memory, the rules alone choose. The time model is not asked.
TEST(ChooseAlgorithmTest, FewRanksGoByTheRules) {
  Tuning rules;
  rules.rules = DefaultRules();
  for (int nodes = 2; nodes <= 16; ++nodes) {
    for (int ranks : {1, 2, 8}) {
      const Topology topology = Nodes(nodes, ranks, ranks);
      for (uint64_t bytes = 4; bytes <= uint64_t{1} << 30; bytes *= 2) {
        for (bool rounds_once : {false, true}) {
          const Workload workload = {Operation::kAllReduce, bytes, true, rounds_once};
          const Choice choice = ChooseAlgorithm(topology, workload);
          ASSERT_TRUE(SameWay(choice, ChooseAlgorithm(topology, workload, rules)));
          ASSERT_TRUE(SameWay(ChooseBetweenNodes(topology, workload, choice),
                              ChooseBetweenNodes(topology, workload, choice, rules)));
        }
      }
    }
  }
}

// The model and a tuning may choose a ring. Sums of 16-bit values then go pairwise too, and the choice says so.
TEST(ChooseAlgorithmTest, RingsOfSumsRoundedOnceArePairwise) {
  const Workload sums = {Operation::kAllReduce, 25000000, false, true};
  EXPECT_EQ(ChooseAlgorithm(Alone(100), sums).algorithm, Algorithm::kPairwise);
  Tuning tuning;
  tuning.rules.resize(1);
  tuning.rules[0].algorithm = Algorithm::kRing;
  const Choice choice = ChooseAlgorithm(OneNode(3), sums, tuning);
  EXPECT_EQ(choice.algorithm, Algorithm::kPairwise);
  EXPECT_EQ(choice.reason, "as many bytes as a ring, which would round a 16-bit sum at every rank");
}

// A tuning's rules come before the model.
TEST(ChooseAlgorithmTest, TuningDecidesForManyRanks) {
  Tuning tuning;
  tuning.rules.resize(1);
  tuning.rules[0].algorithm = Algorithm::kRing;
  EXPECT_EQ(ChooseAlgorithm(Alone(8192), {Operation::kAllReduce, 25000000}, tuning).algorithm, Algorithm::kRing);
}

// The first rule of a tuning that fits a call decides. If none fits, the choice is the same as without the tuning.
TEST(ChooseAlgorithmTest, TuningDecides) {
  Tuning tuning;
  TuningRule small;
  small.where = TuningRule::Where::kOneNode;
  small.values = TuningRule::Values::kPrivate;
  small.ranks_max = 4;
  small.bytes_max = 1000;
  small.algorithm = Algorithm::kReference;
  small.chunk_bytes = 128;
  TuningRule crowded;
  crowded.oversubscribed = true;
  crowded.algorithm = Algorithm::kPairwise;
  tuning.rules = {small, crowded};
  Topology crowd = OneNode(4);
  crowd.oversubscribed = true;
  const auto chosen = [&](const Topology& topology, const Workload& workload) {
    return ChooseAlgorithm(topology, workload, tuning).algorithm;
  };
  EXPECT_EQ(chosen(OneNode(4), {Operation::kAllReduce, 1000, false}), Algorithm::kReference);
  EXPECT_EQ(ChooseAlgorithm(OneNode(4), {Operation::kAllReduce, 1000, false}, tuning).chunk_bytes, 128);
  EXPECT_EQ(chosen(crowd, {Operation::kAllReduce, 1001, false}), Algorithm::kPairwise);
  for (const auto& [topology, workload] : {std::pair<Topology, Workload>{OneNode(4), {Operation::kAllReduce, 1001}},
                                           {OneNode(5), {Operation::kAllReduce, 1000}},
                                           {OneNode(4), {Operation::kAllReduce, 1000, true}},
                                           {OneNode(4), {Operation::kBroadcast, 1000}},
                                           {Nodes(2, 2, 2), {Operation::kAllReduce, 1000}}}) {
    EXPECT_EQ(chosen(topology, workload), ChooseAlgorithm(topology, workload).algorithm);
  }
}

// A rule is passed over if its algorithm is not possible. The rules tried ask for shared memory between nodes, for an
// arena where values lie elsewhere, and for two levels with one rank per node.
TEST(ChooseAlgorithmTest, ImpossibleRulesArePassedOver) {
  for (Algorithm algorithm : {Algorithm::kArena, Algorithm::kStaged, Algorithm::kTwoLevel}) {
    Tuning tuning;
    tuning.rules.resize(1);
    tuning.rules[0].algorithm = algorithm;
    EXPECT_EQ(ChooseAlgorithm(Nodes(3, 1, 1), {Operation::kAllReduce, kMany, false}, tuning).algorithm,
              Algorithm::kRing);
  }
}

// Two levels use as many drivers per node (two_level.h) as the smallest node has ranks, or fewer if the rule says so.
TEST(ChooseAlgorithmTest, Drivers) {
  EXPECT_EQ(ChooseAlgorithm(Nodes(2, 3, 5), {Operation::kAllReduce, kMany}).drivers, 3);
  EXPECT_EQ(ChooseAlgorithm(Nodes(2, 3, 5), {Operation::kAllReduce, 4}).drivers, 1);
}

// Between the nodes runs the algorithm for one rank per node and the bytes of one driver. Sums of 16-bit values travel
// as float32, in twice the bytes.
TEST(ChooseAlgorithmTest, BetweenNodes) {
  struct BetweenRow {
    Topology topology;
    Workload workload;
    Algorithm between;
  };
  constexpr uint64_t kKi = 1024;
  for (const auto& row : std::vector<BetweenRow>{
           {Nodes(2, 2, 2), {Operation::kAllReduce, 4}, Algorithm::kRecursiveDoubling},
           {Nodes(2, 2, 2), {Operation::kAllReduce, 32 * kKi}, Algorithm::kRecursiveDoubling},
           {Nodes(2, 2, 2), {Operation::kAllReduce, 64 * kKi}, Algorithm::kHalvingDoubling},
           {Nodes(2, 2, 2), {Operation::kAllReduce, 512 * kKi}, Algorithm::kHalvingDoubling},
           {Nodes(2, 2, 2), {Operation::kAllReduce, 512 * kKi, true}, Algorithm::kHalvingDoubling},
           {Nodes(2, 2, 2), {Operation::kAllReduce, 512 * kKi, false, true}, Algorithm::kRing},
           {Nodes(2, 2, 2), {Operation::kAllReduce, kKi * kKi}, Algorithm::kRing},
           {Nodes(2, 8, 8), {Operation::kAllReduce, kKi * kKi}, Algorithm::kHalvingDoubling},
           {Nodes(3, 2, 2), {Operation::kAllReduce, 512 * kKi}, Algorithm::kRing},
           {Nodes(64, 8, 8), {Operation::kAllReduce, 25000000}, Algorithm::kRing},
           {Nodes(512, 16, 16), {Operation::kAllReduce, 4 * kKi}, Algorithm::kRecursiveDoubling},
           {Nodes(512, 16, 16), {Operation::kAllReduce, 25000000}, Algorithm::kHalvingDoubling},
           {Nodes(512, 16, 16), {Operation::kAllReduce, 25000000, true, true}, Algorithm::kHalvingDoubling},
           {Nodes(2, 2, 2), {Operation::kBroadcast, kMany}, Algorithm::kChain},
           {Nodes(2, 2, 2), {Operation::kReduceScatter, kMany}, Algorithm::kRing},
       }) {
    const Choice choice = ChooseAlgorithm(row.topology, row.workload);
    ASSERT_EQ(choice.algorithm, Algorithm::kTwoLevel);
    const Choice between = ChooseBetweenNodes(row.topology, row.workload, choice);
    EXPECT_EQ(between.algorithm, row.between) << NameOf(between.algorithm) << " instead of " << NameOf(row.between)
                                              << " for " << NameOf(row.workload.operation) << " of "
                                              << row.workload.bytes << " bytes on " << row.topology.nodes << " nodes";
  }
}

// A tuning's rules also choose between the nodes, as for a group with one rank per node.
TEST(ChooseAlgorithmTest, TuningChoosesBetweenNodes) {
  Tuning tuning;
  tuning.rules.resize(2);
  tuning.rules[0].algorithm = Algorithm::kTwoLevel;
  tuning.rules[1].algorithm = Algorithm::kPairwise;
  const Workload workload = {Operation::kAllReduce, kMany};
  const Choice choice = ChooseAlgorithm(Nodes(2, 2, 2), workload, tuning);
  ASSERT_EQ(choice.algorithm, Algorithm::kTwoLevel);
  EXPECT_EQ(ChooseBetweenNodes(Nodes(2, 2, 2), workload, choice, tuning).algorithm, Algorithm::kPairwise);
}

// For every operation, in several topologies and for many sizes, the default rules choose an algorithm that implements
// the operation.
TEST(ChooseAlgorithmTest, DefaultsCoverEverything) {
  for (const Topology& topology : {OneNode(2), OneNode(100), WithoutSharedMemory(OneNode(3)), Nodes(2, 1, 1),
                                   Nodes(3, 1, 4), WithoutSharedMemory(Nodes(3, 4, 4))}) {
    for (Operation operation : kAllOperations) {
      for (bool shared : {false, true}) {
        for (uint64_t bytes = 1; bytes < uint64_t{1} << 40; bytes *= 2) {
          const Choice choice = ChooseAlgorithm(topology, {operation, bytes, shared});
          ASSERT_NE(choice.algorithm, Algorithm::kNothing);
          ASSERT_TRUE(Does(choice.algorithm, operation)) << NameOf(operation) << " by " << NameOf(choice.algorithm);
          ASSERT_NE(choice.reason, "no rule fits");
        }
      }
    }
  }
}

// For two ranks of a node the ranges of each operation cover all sizes. Large values in an arena are reduced in place,
// and sums of 16-bit values have no ranges of their own.
TEST(ChooseAlgorithmTest, ListedChoices) {
  const std::vector<ExplainedChoice> choices = ListChoices(OneNode(2), {});
  ASSERT_GT(choices.size(), 1);
  EXPECT_EQ(choices[0].operation, Operation::kAllReduce);
  EXPECT_TRUE(choices[0].shared);
  EXPECT_EQ(choices[0].bytes_from, 4);
  EXPECT_EQ(choices[1].choice.reason, "values in a shared arena: in place, no copy, no messages");
  uint64_t next = 4;
  for (const ExplainedChoice& one : choices) {
    EXPECT_EQ(one.bytes_from, next);
    next = one.bytes_to == TuningRule::kAnyBytes ? 4 : one.bytes_to * 2;
  }
  EXPECT_EQ(next, 4);
  for (const ExplainedChoice& one : choices) {
    EXPECT_NE(one.choice.algorithm, Algorithm::kRing);
    EXPECT_FALSE(one.rounds_once);
  }
}

// A range ends where the algorithm between the nodes changes, even if the choice itself stays two-level.
TEST(ChooseAlgorithmTest, ListedChoicesBetweenNodes) {
  const Topology topology = Nodes(2, 2, 2);
  for (const ExplainedChoice& one : ListChoices(topology, {})) {
    if (one.choice.algorithm != Algorithm::kTwoLevel) {
      EXPECT_EQ(one.between.algorithm, Algorithm::kNothing);
      continue;
    }
    for (uint64_t bytes : {one.bytes_from, one.bytes_to == TuningRule::kAnyBytes ? uint64_t{1} << 30 : one.bytes_to}) {
      const Workload workload = {one.operation, bytes, one.shared, one.rounds_once};
      EXPECT_TRUE(SameWay(one.between, ChooseBetweenNodes(topology, workload, one.choice)));
    }
  }
}

// Sums of 16-bit values have ranges of their own if and only if some of them are chosen differently.
TEST(ChooseAlgorithmTest, ExplanationOfSumsOf16Bits) {
  // Two-level reduces are possible for all values but 16-bit sums.
  Tuning tuning;
  tuning.rules.resize(1);
  tuning.rules[0].operation = Operation::kReduce;
  tuning.rules[0].algorithm = Algorithm::kTwoLevel;
  for (const Topology& topology : {OneNode(4), Nodes(2, 1, 1), Nodes(2, 2, 2)}) {
    bool differs = false;
    for (Operation operation : kAllOperations) {
      for (uint64_t bytes = 4; Reduces(operation) && bytes <= uint64_t{1} << 30; bytes *= 2) {
        for (bool shared : {false, true}) {
          const Choice plain = ChooseAlgorithm(topology, {operation, bytes, shared, false}, tuning);
          const Choice sum = ChooseAlgorithm(topology, {operation, bytes, shared, true}, tuning);
          differs = differs || plain.algorithm != sum.algorithm || plain.chunk_bytes != sum.chunk_bytes ||
                    plain.drivers != sum.drivers;
        }
      }
    }
    bool listed = false;
    for (const ExplainedChoice& line : ListChoices(topology, tuning)) {
      if (!line.rounds_once) continue;
      listed = true;
      EXPECT_TRUE(Reduces(line.operation));
      const Workload workload = {line.operation, line.bytes_from, line.shared, true};
      EXPECT_EQ(line.choice.algorithm, ChooseAlgorithm(topology, workload, tuning).algorithm);
    }
    EXPECT_EQ(listed, differs);
  }
}

}  // namespace
}  // namespace hooke
