#ifndef HOOKE_MPI_GROUP_COLLECTIVES_TREE_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_TREE_H_

// The trees along which values go from a root to all ranks (broadcast.h) or the other way (rooted_reduce.h). Pure.

#include "absl/container/inlined_vector.h"

namespace hooke {

// Ranks [0, k), [k, 2k), ... form sub-groups, the last one perhaps a smaller one. Each has a leader: the root in its
// own sub-group, else the first rank. From the leader a chain goes through its sub-group; the leaders form a tree of
// their own. So a binomial tree is one of sub-groups of 1, a chain one of a single sub-group, and between them lie the
// hierarchical ones of S-Caffe (Awan, Hamidouche, Hashmi and Panda, 2017): chain-binomial and chain-chain.
struct TreeShape {
  enum class Leaders { kBinomial, kChain };

  int sub_group_ranks = 1;  // k, at least 1.
  Leaders leaders = Leaders::kBinomial;
};

// ceil(log2 n) levels; the root sends or receives the values as many times. For few values.
TreeShape BinomialShape();
// n-1 levels; no rank sends or receives the values more than once: with c chunks it takes the time of c+n-2 of them.
// For many values.
TreeShape ChainShape(int ranks);
// Of as many sub-groups as each has ranks, or nearly: 8 chains of 8 for 64 ranks, as S-Caffe has them.
TreeShape HierarchicalShape(int ranks, TreeShape::Leaders leaders);

// One rank's place.
struct Tree {
  int parent = -1;                       // -1 at the root.
  absl::InlinedVector<int, 8> children;  // Those with the largest subtrees first: they take longest.
};

Tree MakeTree(const TreeShape& shape, int rank, int ranks, int root);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_TREE_H_
