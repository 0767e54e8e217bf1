#include "mpi_group/collectives/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr TreeShape::Leaders kBinomial = TreeShape::Leaders::kBinomial;
constexpr TreeShape::Leaders kChain = TreeShape::Leaders::kChain;

// In every shape each rank but the root has a parent that counts it among its children, and following parents ends at
// the root.
TEST(TreeTest, EveryShapeSpansAllRanks) {
  for (TreeShape::Leaders leaders : {kBinomial, kChain}) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
      for (int k = 1; k <= ranks + 1; ++k) {
        for (int root = 0; root < ranks; ++root) {
          SCOPED_TRACE(absl::StrCat(ranks, " ranks, sub-groups of ", k, ", root ", root));
          size_t children = 0;
          for (int rank = 0; rank < ranks; ++rank) {
            const Tree tree = MakeTree({k, leaders}, rank, ranks, root);
            children += tree.children.size();
            for (int child : tree.children) EXPECT_EQ(MakeTree({k, leaders}, child, ranks, root).parent, rank);
            int steps = 0;
            int at = rank;
            while (at != root && steps++ < ranks) at = MakeTree({k, leaders}, at, ranks, root).parent;
            EXPECT_EQ(at, root);
          }
          EXPECT_EQ(children, ranks - 1);
          EXPECT_EQ(MakeTree({k, leaders}, root, ranks, root).parent, -1);
        }
      }
    }
  }
}

// The trees as the papers draw them, for 8 ranks and root 0.
TEST(TreeTest, KnownTrees) {
  EXPECT_THAT(MakeTree(BinomialShape(), 0, 8, 0).children, ElementsAre(4, 2, 1));
  EXPECT_THAT(MakeTree(BinomialShape(), 4, 8, 0).children, ElementsAre(6, 5));
  EXPECT_THAT(MakeTree(BinomialShape(), 7, 8, 0).children, IsEmpty());
  EXPECT_THAT(MakeTree(ChainShape(8), 3, 8, 0).children, ElementsAre(4));
  // Sub-groups {0, 1, 2}, {3, 4, 5}, {6, 7}: leaders 0, 3, 6.
  EXPECT_THAT(MakeTree({3, kBinomial}, 0, 8, 0).children, ElementsAre(6, 3, 1));
  EXPECT_THAT(MakeTree({3, kChain}, 3, 8, 0).children, ElementsAre(6, 4));
  EXPECT_EQ(MakeTree({3, kChain}, 5, 8, 0).parent, 4);
}

// Hierarchical trees have about as many sub-groups as each has ranks.
TEST(TreeTest, HierarchicalShapes) {
  for (const auto& [ranks, sub_group] : {std::pair(1, 1), {2, 2}, {4, 2}, {10, 4}, {64, 8}, {65, 9}}) {
    EXPECT_EQ(HierarchicalShape(ranks, kBinomial).sub_group_ranks, sub_group) << ranks;
  }
  EXPECT_EQ(HierarchicalShape(9, kChain).leaders, kChain);
}

// A root inside a sub-group is the sub-group's leader, so that every chain stays inside its own sub-group.
TEST(TreeTest, RootLeadsItsSubGroup) {
  EXPECT_THAT(MakeTree({4, kBinomial}, 6, 8, 6).children, ElementsAre(0, 7));
  EXPECT_THAT(MakeTree({4, kBinomial}, 7, 8, 6).children, ElementsAre(4));
  EXPECT_THAT(MakeTree({4, kBinomial}, 5, 8, 6).children, IsEmpty());
}

}  // namespace
}  // namespace hooke
