#include "mpi_group/collectives/pair_exchange.h"

#include <algorithm>

#include "mpi_group/collectives/message_window.h"
#include "mpi_group/reduce/reduce_list.h"

namespace hooke {
namespace {

// Before it waits for chunk i a rank has started to send up to i + window. So its peer can finish chunk i even if it is
// behind, and the two never wait for each other in a circle.
absl::Status Exchange(Transport& transport, const PairExchange& pair, const Reduction* reduction, const Call& call) {
  const uint64_t chunk_values = ChunkValues(call, pair.incoming.type());
  const ValueRange outgoing = {0, pair.outgoing.size()};
  const ValueRange incoming = {0, pair.incoming.size()};
  const uint64_t chunks = std::max(ChunkCount(outgoing, chunk_values), ChunkCount(incoming, chunk_values));
  const uint64_t window = std::max(1, call.window);
  SendWindow sends(transport, call, call.window);
  ReceiveWindow receives(transport, call, call.window);
  for (uint64_t i = 0; i < chunks; ++i) {
    while (receives.started() < std::min(chunks, i + window)) {
      const TensorList next = pair.incoming.Slice(Chunk(incoming, receives.started(), chunk_values));
      absl::Status status =
          reduction != nullptr ? receives.StartBeside(pair.peer, next) : receives.StartInto(pair.peer, next);
      if (!status.ok()) return status;
    }
    while (sends.started() < std::min(chunks, i + window)) {
      const TensorList next = pair.outgoing.Slice(Chunk(outgoing, sends.started(), chunk_values));
      absl::Status status = sends.Start(pair.peer, next);
      if (!status.ok()) return status;
    }
    const absl::StatusOr<absl::Span<const char>> received = receives.Next();
    if (!received.ok()) return received.status();
    if (reduction == nullptr) continue;
    // `incoming` may be the memory of `outgoing`, so the chunk must have been sent before it is overwritten.
    absl::Status status = sends.WaitForFirst(i + 1);
    if (!status.ok()) return status;
    ReduceIntoList(*reduction, absl::MakeConstSpan(&*received, 1), pair.peer < transport.rank() ? 1 : 0,
                   pair.incoming.Slice(Chunk(incoming, i, chunk_values)));
  }
  return sends.Finish();
}

}  // namespace

absl::Status ExchangeAndStore(Transport& transport, const PairExchange& pair, const Call& call) {
  return Exchange(transport, pair, nullptr, call);
}

absl::Status ExchangeAndReduce(Transport& transport, const PairExchange& pair, const Reduction& reduction,
                               const Call& call) {
  return Exchange(transport, pair, &reduction, call);
}

Folding::Folding(int rank, int ranks) : rank_(rank) {
  while (2 * remaining_ <= ranks) remaining_ *= 2;
  extra_ = ranks - remaining_;
  if (rank >= 2 * extra_) {
    index_ = rank - extra_;
  } else {
    index_ = rank % 2 == 1 ? rank / 2 : -1;
  }
}

absl::Status Folding::Fold(Transport& transport, const TensorList& values, const Reduction& reduction,
                           const Call& call) const {
  if (rank_ >= 2 * extra_) return absl::OkStatus();
  const TensorList nothing = values.Slice({0, 0});
  if (index_ < 0) return ExchangeAndReduce(transport, {rank_ + 1, values, nothing}, reduction, call);
  return ExchangeAndReduce(transport, {rank_ - 1, nothing, values}, reduction, call);
}

absl::Status Folding::Unfold(Transport& transport, const TensorList& values, const Call& call) const {
  if (rank_ >= 2 * extra_) return absl::OkStatus();
  const TensorList nothing = values.Slice({0, 0});
  if (index_ < 0) return ExchangeAndStore(transport, {rank_ + 1, nothing, values}, call);
  return ExchangeAndStore(transport, {rank_ - 1, values, nothing}, call);
}

}  // namespace hooke
