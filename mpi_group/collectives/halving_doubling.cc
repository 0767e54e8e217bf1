#include "mpi_group/collectives/halving_doubling.h"

#include "absl/container/inlined_vector.h"
#include "mpi_group/collectives/pair_exchange.h"
#include "mpi_group/reduce/accumulator.h"

namespace hooke {
namespace {

// One halving step: of its current range this rank keeps one half to reduce and gives the other to its peer.
struct Halving {
  int peer = -1;
  ValueRange kept;
  ValueRange given;
};

// The steps in order, the farthest peer first. Both ranks of a pair arrive at a step with the same range.
absl::InlinedVector<Halving, 16> Halvings(const Folding& folding, uint64_t values) {
  absl::InlinedVector<Halving, 16> halvings;
  ValueRange range = {0, values};
  for (int distance = folding.remaining() / 2; distance > 0; distance /= 2) {
    const uint64_t middle = range.begin + range.size() / 2;
    const ValueRange lower = {range.begin, middle};
    const ValueRange upper = {middle, range.end};
    const bool keeps_upper = (folding.index() & distance) != 0;
    halvings.push_back(
        {folding.RankOf(folding.index() ^ distance), keeps_upper ? upper : lower, keeps_upper ? lower : upper});
    range = halvings.back().kept;
  }
  return halvings;
}

absl::Status HalveAndDouble(Transport& transport, const Folding& folding, const TensorList& values, ReduceOp op,
                            const Call& call) {
  const absl::InlinedVector<Halving, 16> halvings = Halvings(folding, values.size());
  for (size_t i = 0; i < halvings.size(); ++i) {
    const Halving& step = halvings[i];
    // In the last step the kept values are complete, so this step divides means.
    const bool last = i + 1 == halvings.size();
    absl::Status status = ExchangeAndReduce(transport, {step.peer, values.Slice(step.given), values.Slice(step.kept)},
                                            {values.type(), op, last ? transport.size() : 0}, call);
    if (!status.ok()) return status;
  }
  for (auto step = halvings.rbegin(); step != halvings.rend(); ++step) {
    absl::Status status =
        ExchangeAndStore(transport, {step->peer, values.Slice(step->kept), values.Slice(step->given)}, call);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status HalvingDoublingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call) {
  const int n = transport.size();
  Accumulator accumulator(values, op, n, call.scratch);
  const TensorList& list = accumulator.list();
  const Folding folding(transport.rank(), n);
  absl::Status status = folding.Fold(transport, list, {list.type(), op}, call);
  if (status.ok() && folding.index() >= 0) status = HalveAndDouble(transport, folding, list, op, call);
  if (status.ok()) status = folding.Unfold(transport, list, call);
  if (status.ok()) accumulator.Store();
  return status;
}

}  // namespace hooke
