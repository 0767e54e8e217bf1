#include "mpi_group/collectives/message_collectives.h"

#include "mpi_group/collectives/all_gather.h"
#include "mpi_group/collectives/broadcast.h"
#include "mpi_group/collectives/halving_doubling.h"
#include "mpi_group/collectives/pairwise.h"
#include "mpi_group/collectives/recursive_doubling.h"
#include "mpi_group/collectives/reference.h"
#include "mpi_group/collectives/ring.h"
#include "mpi_group/collectives/rooted_reduce.h"
#include "mpi_group/collectives/tree.h"

namespace hooke {
namespace {

// The tree of a broadcast or a reduce.
TreeShape ShapeFor(Algorithm algorithm, int ranks) {
  switch (algorithm) {
    case Algorithm::kChain:
      return ChainShape(ranks);
    case Algorithm::kChainBinomial:
      return HierarchicalShape(ranks, TreeShape::Leaders::kBinomial);
    case Algorithm::kChainChain:
      return HierarchicalShape(ranks, TreeShape::Leaders::kChain);
    default:
      return BinomialShape();
  }
}

}  // namespace

absl::Status AllReduceBy(Algorithm algorithm, Transport& transport, const TensorList& values, ReduceOp op,
                         const Call& call) {
  switch (algorithm) {
    case Algorithm::kReference:
      return ReferenceAllReduce(transport, values, op, call);
    case Algorithm::kPairwise:
      return PairwiseAllReduce(transport, values, op, call);
    case Algorithm::kRecursiveDoubling:
      return RecursiveDoublingAllReduce(transport, values, op, call);
    case Algorithm::kHalvingDoubling:
      return HalvingDoublingAllReduce(transport, values, op, call);
    default:
      return RingAllReduce(transport, values, op, call);
  }
}

absl::Status ReduceBy(Algorithm algorithm, Transport& transport, const TensorList& values, ReduceOp op, int root,
                      const Call& call) {
  return TreeReduce(transport, values, op, ShapeFor(algorithm, transport.size()), root, call);
}

absl::Status ReduceScatterBy(Algorithm algorithm, Transport& transport, const TensorList& values,
                             absl::Span<const ValueRange> parts, ReduceOp op, const Call& call) {
  if (algorithm == Algorithm::kPairwise) return PairwiseReduceScatter(transport, values, parts, op, call);
  return RingReduceScatter(transport, values, parts, op, call);
}

absl::Status AllGatherBy(Algorithm algorithm, Transport& transport, const TensorList& values,
                         absl::Span<const ValueRange> parts, const Call& call) {
  if (algorithm == Algorithm::kPairwise) return PairwiseAllGather(transport, values, parts, call);
  return RingAllGather(transport, values, parts, call);
}

absl::Status BroadcastBy(Algorithm algorithm, Transport& transport, const TensorList& values, int root,
                         const Call& call) {
  return TreeBroadcast(transport, values, ShapeFor(algorithm, transport.size()), root, call);
}

}  // namespace hooke
