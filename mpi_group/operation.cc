#include "mpi_group/operation.h"

namespace hooke {

absl::string_view NameOf(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all-reduce";
    case Operation::kReduce:
      return "reduce";
    case Operation::kReduceScatter:
      return "reduce-scatter";
    case Operation::kAllGather:
      return "all-gather";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kBarrier:
      return "barrier";
  }
  return "unknown operation";
}

absl::string_view NameOf(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kNothing:
      return "nothing";
    case Algorithm::kReference:
      return "reference";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kPairwise:
      return "pairwise";
    case Algorithm::kRecursiveDoubling:
      return "recursive-doubling";
    case Algorithm::kHalvingDoubling:
      return "halving-doubling";
    case Algorithm::kBinomialTree:
      return "binomial-tree";
    case Algorithm::kChain:
      return "chain";
    case Algorithm::kChainBinomial:
      return "chain-binomial";
    case Algorithm::kChainChain:
      return "chain-chain";
    case Algorithm::kDissemination:
      return "dissemination";
    case Algorithm::kArena:
      return "arena";
    case Algorithm::kStaged:
      return "staged";
    case Algorithm::kStagedSlices:
      return "staged-slices";
    case Algorithm::kTwoLevel:
      return "two-level";
  }
  return "unknown algorithm";
}

bool Reduces(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduce ||
         operation == Operation::kReduceScatter;
}

bool Does(Algorithm algorithm, Operation operation) {
  switch (algorithm) {
    case Algorithm::kNothing:
    case Algorithm::kStaged:
    case Algorithm::kTwoLevel:
      return true;
    case Algorithm::kArena:
      return operation != Operation::kBarrier;
    case Algorithm::kReference:
    case Algorithm::kRecursiveDoubling:
    case Algorithm::kHalvingDoubling:
    case Algorithm::kStagedSlices:
      return operation == Operation::kAllReduce;
    case Algorithm::kRing:
    case Algorithm::kPairwise:
      return operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
             operation == Operation::kAllGather;
    case Algorithm::kBinomialTree:
    case Algorithm::kChain:
    case Algorithm::kChainBinomial:
    case Algorithm::kChainChain:
      return operation == Operation::kBroadcast || operation == Operation::kReduce;
    case Algorithm::kDissemination:
      return operation == Operation::kBarrier;
  }
  return false;
}

}  // namespace hooke
