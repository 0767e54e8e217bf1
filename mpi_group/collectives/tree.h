#ifndef HOOKE_MPI_GROUP_COLLECTIVES_TREE_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_TREE_H_

// The trees of broadcasts (broadcast.h, from the root to all ranks) and reduces (rooted_reduce.h, the other way).

#include "absl/container/inlined_vector.h"

namespace hooke {

// The shape of a tree. Ranks [0, k), [k, 2k), ... form sub-groups; the last one may be smaller. Each sub-group has a
// leader: the root in its own, else the first rank. From the leader a chain runs through its sub-group. The leaders
// form a tree of their own.
//
// With sub-groups of one rank this is a binomial tree, with a single sub-group a chain. Between them lie the
// hierarchical trees of S-Caffe (Awan, Hamidouche, Hashmi and Panda, 2017): chain-binomial and chain-chain.
struct TreeShape {
  enum class Leaders { kBinomial, kChain };

  int sub_group_ranks = 1;  // k, at least 1.
  Leaders leaders = Leaders::kBinomial;
};

// A binomial tree, for few values: ceil(log2 n) levels. The root sends or receives all values once per level.
TreeShape BinomialShape();
// A chain, for many values: n-1 levels. No rank sends or receives the values more than once. Sending c chunks along it
// takes as long as sending c+n-2 chunks over one link.
TreeShape ChainShape(int ranks);
// A hierarchical tree with about as many sub-groups as each has ranks: 8 chains of 8 for 64 ranks, as in S-Caffe.
TreeShape HierarchicalShape(int ranks, TreeShape::Leaders leaders);

// One rank's place in a tree.
struct Tree {
  int parent = -1;                       // -1 at the root.
  absl::InlinedVector<int, 8> children;  // Children with the largest subtrees come first, as these take longest.
};

Tree MakeTree(const TreeShape& shape, int rank, int ranks, int root);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_TREE_H_
