#include "mpi_group/collectives/tree.h"

#include <algorithm>

namespace hooke {
namespace {

// A rank's sub-group: `size` ranks from `first` on. The chain goes from `leader` to higher ranks and wraps around to
// `first`.
struct SubGroup {
  int first = 0;
  int size = 0;
  int leader = 0;

  int PlaceOf(int rank) const { return (rank - leader + size) % size; }
  int At(int place) const { return first + (leader - first + place) % size; }
};

SubGroup SubGroupAt(int index, int k, int ranks, int root) {
  const int first = index * k;
  return {first, std::min(k, ranks - first), root / k == index ? root : first};
}

// In a binomial tree a node's parent is its number without the lowest set bit; its children set one lower bit. With 8
// nodes:
//   0 -> 4, 2, 1;  4 -> 6, 5;  6 -> 7;  2 -> 3
void PlaceInBinomialTree(int node, int nodes, Tree& tree) {
  int bit = 1;
  while (bit < nodes && (node & bit) == 0) bit <<= 1;
  if (node != 0) tree.parent = node - bit;
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (node + bit < nodes) tree.children.push_back(node + bit);
  }
}

void PlaceInChain(int node, int nodes, Tree& tree) {
  if (node > 0) tree.parent = node - 1;
  if (node + 1 < nodes) tree.children.push_back(node + 1);
}

}  // namespace

TreeShape BinomialShape() { return {1, TreeShape::Leaders::kBinomial}; }
TreeShape ChainShape(int ranks) { return {ranks, TreeShape::Leaders::kChain}; }

TreeShape HierarchicalShape(int ranks, TreeShape::Leaders leaders) {
  int k = 1;
  while (k * k < ranks) ++k;
  return {k, leaders};
}

Tree MakeTree(const TreeShape& shape, int rank, int ranks, int root) {
  const int k = std::max(1, std::min(shape.sub_group_ranks, ranks));
  const int groups = (ranks + k - 1) / k;
  const SubGroup own = SubGroupAt(rank / k, k, ranks, root);
  Tree tree;
  if (rank == own.leader) {
    // Tree nodes are sub-groups, numbered from the root's own.
    const int node = (rank / k - root / k + groups) % groups;
    if (shape.leaders == TreeShape::Leaders::kBinomial) {
      PlaceInBinomialTree(node, groups, tree);
    } else {
      PlaceInChain(node, groups, tree);
    }
    const auto leader_of = [&](int at) { return SubGroupAt((at + root / k) % groups, k, ranks, root).leader; };
    if (tree.parent >= 0) tree.parent = leader_of(tree.parent);
    for (int& child : tree.children) child = leader_of(child);
  } else {
    tree.parent = own.At(own.PlaceOf(rank) - 1);
  }
  const int place = own.PlaceOf(rank);
  if (place + 1 < own.size) tree.children.push_back(own.At(place + 1));
  return tree;
}

}  // namespace hooke
