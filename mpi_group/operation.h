#ifndef HOOKE_MPI_GROUP_OPERATION_H_
#define HOOKE_MPI_GROUP_OPERATION_H_

// The collective operations, and the ways of doing them.

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hooke {

enum class Operation : uint8_t { kAllReduce, kReduce, kReduceScatter, kAllGather, kBroadcast, kBarrier };
inline constexpr Operation kAllOperations[] = {Operation::kAllReduce, Operation::kReduce,    Operation::kReduceScatter,
                                               Operation::kAllGather, Operation::kBroadcast, Operation::kBarrier};

enum class Algorithm : uint8_t {
  kNothing,  // A single rank, or no values.
  // By messages.
  kReference,          // Through rank 0 (reference.h).
  kRing,               // ring.h, all_gather.h
  kPairwise,           // pairwise.h
  kRecursiveDoubling,  // recursive_doubling.h
  kHalvingDoubling,    // halving_doubling.h
  kBinomialTree,       // broadcast.h, rooted_reduce.h
  kChain,              // broadcast.h, rooted_reduce.h
  kChainBinomial,      // The same, along hierarchical trees (tree.h): chains under a binomial tree,
  kChainChain,         // or under a chain.
  kDissemination,      // barrier.h
  // Among the ranks of one node (node_collectives.h).
  kArena,         // In place, on values in a shared arena.
  kStaged,        // Through slots in shared memory.
  kStagedSlices,  // The same, where each rank reduces its part.
  // Between nodes by messages, in a node through shared memory (two_level.h).
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

// As messages and tuning files name them: "all-reduce", "recursive-doubling".
absl::string_view NameOf(Operation operation);
absl::string_view NameOf(Algorithm algorithm);

// Whether it makes one value of several ranks'.
bool Reduces(Operation operation);

// Whether there is such a way of doing it.
bool Does(Algorithm algorithm, Operation operation);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_OPERATION_H_
