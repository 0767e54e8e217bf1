#ifndef HOOKE_MPI_GROUP_OPERATION_H_
#define HOOKE_MPI_GROUP_OPERATION_H_

// The collective operations, and the algorithms that implement them.

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hooke {

enum class Operation : uint8_t { kAllReduce, kReduce, kReduceScatter, kAllGather, kBroadcast, kBarrier };
inline constexpr Operation kAllOperations[] = {Operation::kAllReduce, Operation::kReduce,    Operation::kReduceScatter,
                                               Operation::kAllGather, Operation::kBroadcast, Operation::kBarrier};

enum class Algorithm : uint8_t {
  kNothing,  // A single rank, or no values.
  // Algorithms that send messages between all ranks.
  kReference,          // Rank 0 adds everything up and sends the result (reference.h).
  kRing,               // ring.h, all_gather.h
  kPairwise,           // pairwise.h
  kRecursiveDoubling,  // recursive_doubling.h
  kHalvingDoubling,    // halving_doubling.h
  kBinomialTree,       // broadcast.h, rooted_reduce.h
  kChain,              // broadcast.h, rooted_reduce.h
  kChainBinomial,      // Chains of ranks under a binomial tree (tree.h).
  kChainChain,         // Chains of ranks under a chain (tree.h).
  kDissemination,      // barrier.h
  // Algorithms for the ranks of one node (node_collectives.h).
  kArena,         // Works in place on values in a shared arena.
  kStaged,        // Values go through slots in shared memory.
  kStagedSlices,  // Like kStaged, but each rank reduces only its slice.
  // Messages between nodes, shared memory inside each node (two_level.h).
  kTwoLevel,
};
inline constexpr Algorithm kAllAlgorithms[] = {Algorithm::kNothing,
                                               Algorithm::kReference,
                                               Algorithm::kRing,
                                               Algorithm::kPairwise,
                                               Algorithm::kRecursiveDoubling,
                                               Algorithm::kHalvingDoubling,
                                               Algorithm::kBinomialTree,
                                               Algorithm::kChain,
                                               Algorithm::kChainBinomial,
                                               Algorithm::kChainChain,
                                               Algorithm::kDissemination,
                                               Algorithm::kArena,
                                               Algorithm::kStaged,
                                               Algorithm::kStagedSlices,
                                               Algorithm::kTwoLevel};

// The names in messages and tuning files, such as "all-reduce" and "recursive-doubling".
absl::string_view NameOf(Operation operation);
absl::string_view NameOf(Algorithm algorithm);

// True if the operation combines the ranks' values, rather than only moving them.
bool Reduces(Operation operation);

// True if `algorithm` implements `operation`.
bool Does(Algorithm algorithm, Operation operation);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_OPERATION_H_
