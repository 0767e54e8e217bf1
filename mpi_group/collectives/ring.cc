#include "mpi_group/collectives/ring.h"

#include "mpi_group/collectives/pairwise.h"
#include "mpi_group/collectives/ring_pass.h"
#include "mpi_group/reduce/accumulator.h"

namespace hooke {

absl::Status RingReduceScatter(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                               ReduceOp op, const Call& call) {
  const int n = transport.size();
  if (NeedsWideSums(values.type(), op, n)) return PairwiseReduceScatter(transport, values, parts, op, call);
  return PassAroundRing(transport, values, parts, {0, n - 1}, op, call);
}

absl::Status RingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call) {
  const int n = transport.size();
  if (NeedsWideSums(values.type(), op, n)) return PairwiseAllReduce(transport, values, op, call);
  const Parts parts = EvenParts(values.size(), n);
  return PassAroundRing(transport, values, parts, {0, 2 * (n - 1)}, op, call);
}

}  // namespace hooke
