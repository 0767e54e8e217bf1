#include "mpi_group/transport/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::ElementsAre;

// Nodes are numbered in the order of their lowest ranks.
TEST(TopologyTest, NodesFrom) {
  const Nodes nodes = NodesFrom({"x", "y", "y", "x", "z"});
  EXPECT_THAT(nodes.node_of_rank, ElementsAre(0, 1, 1, 0, 2));
  EXPECT_THAT(nodes.ranks_of_node, ElementsAre(ElementsAre(0, 3), ElementsAre(1, 2), ElementsAre(4)));
}

// The nodes of `ranks` ranks, where rank r is on the node numbered node_of(r).
template <typename NodeOf>
Nodes Place(int ranks, const NodeOf& node_of) {
  std::vector<std::string> identities;
  identities.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) identities.push_back(absl::StrCat(node_of(rank)));
  return NodesFrom(identities);
}

// Blocks of ranks, round robin and both at once take one pattern. A node that has fewer ranks costs one more.
TEST(TopologyTest, NormalPlacementsAreShort) {
  const auto patterns = [](const Nodes& nodes) { return PatternsOf(nodes.node_of_rank).size(); };
  EXPECT_EQ(patterns(Place(8192, [](int rank) { return rank / 64; })), 1);
  EXPECT_EQ(patterns(Place(8192, [](int rank) { return rank % 128; })), 1);
  EXPECT_EQ(patterns(Place(8192, [](int rank) { return rank / 8 % 128; })), 1);
  EXPECT_EQ(patterns(Place(8192, [](int rank) { return rank; })), 1);
  EXPECT_EQ(patterns(Place(8000, [](int rank) { return rank / 64; })), 1);
  EXPECT_EQ(patterns(Place(8001, [](int rank) { return rank / 64; })), 2);
  EXPECT_EQ(patterns(Place(8001, [](int rank) { return rank % 128; })), 2);
}

// Patterns give back the nodes from which they were made, whichever ranks share a node.
TEST(TopologyTest, PatternsThereAndBack) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const int ranks = static_cast<int>(1 + random() % 40);
    const int most = static_cast<int>(1 + random() % 5);
    const int stride = static_cast<int>(1 + random() % 4);
    const bool regular = round % 2 == 0;
    const Nodes nodes =
        Place(ranks, [&](int rank) { return regular ? rank / stride % most : static_cast<int>(random() % most); });
    const std::vector<NodePattern> patterns = PatternsOf(nodes.node_of_rank);
    EXPECT_LE(patterns.size(), ranks);
    const absl::StatusOr<Nodes> back = NodesFrom(patterns, ranks);
    ASSERT_EQ(back.status(), absl::OkStatus());
    EXPECT_EQ(back->node_of_rank, nodes.node_of_rank);
    EXPECT_EQ(back->ranks_of_node, nodes.ranks_of_node);
  }
}

// Patterns that describe too few ranks, too many, none, or nodes out of order are refused, and take no memory.
TEST(TopologyTest, DamagedPatternsAreRefused) {
  constexpr uint32_t kMost = 0xffffffff;
  for (const std::vector<NodePattern>& patterns : std::vector<std::vector<NodePattern>>{
           {},
           {{0, 2, 2, 1}, {0, 1, 1, 1}},
           {{0, 3, 1, 1}},
           {{0, 0, 4, 1}, {0, 4, 1, 1}},
           {{0, 4, 1, 0}, {0, 4, 1, 1}},
           {{1, 4, 1, 1}},
           {{0, 1, 1, 1}, {2, 3, 1, 1}},
           {{kMost, 4, 1, 1}},
           {{0, kMost, kMost, kMost}},
           {{0, 1, 1, kMost}},
       }) {
    EXPECT_EQ(NodesFrom(patterns, 4).status().code(), absl::StatusCode::kInternal);
  }
}

// A process always has the same identity.
TEST(TopologyTest, IdentityIsStable) {
  EXPECT_EQ(NodeIdentity(), NodeIdentity());
  EXPECT_THAT(NodeIdentity(), testing::HasSubstr("network "));
}

}  // namespace
}  // namespace hooke
