#include "mpi_group/collectives/recursive_doubling.h"

#include "mpi_group/collectives/pair_exchange.h"
#include "mpi_group/reduce/accumulator.h"

namespace hooke {
namespace {

absl::Status Double(Transport& transport, const Folding& folding, const TensorList& values, ReduceOp op,
                    const Call& call) {
  for (int distance = 1; distance < folding.remaining(); distance *= 2) {
    // In the last step all values are complete, so this step divides means.
    const bool last = 2 * distance == folding.remaining();
    const int peer = folding.RankOf(folding.index() ^ distance);
    absl::Status status =
        ExchangeAndReduce(transport, {peer, values, values}, {values.type(), op, last ? transport.size() : 0}, call);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RecursiveDoublingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call) {
  const int n = transport.size();
  Accumulator accumulator(values, op, n, call.scratch);
  const TensorList& list = accumulator.list();
  const Folding folding(transport.rank(), n);
  absl::Status status = folding.Fold(transport, list, {list.type(), op}, call);
  if (status.ok() && folding.index() >= 0) status = Double(transport, folding, list, op, call);
  if (status.ok()) status = folding.Unfold(transport, list, call);
  if (status.ok()) accumulator.Store();
  return status;
}

}  // namespace hooke
