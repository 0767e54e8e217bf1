#include "mpi_group/ring.h"

#include <algorithm>
#include <vector>

#include "mpi_group/all_gather.h"
#include "mpi_group/reduce.h"

namespace hooke {
namespace {

// Adds contiguous values to those of a list.
void ReduceIntoList(ReduceOp op, absl::Span<const float> from, const TensorList& into) {
  for (absl::Span<float> piece : into.pieces()) {
    ReduceInto(op, from.first(piece.size()), piece);
    from.remove_prefix(piece.size());
  }
}

}  // namespace

// With n = 3, rank r: slice r-1 goes out while slice r-2 comes in and is reduced; then r-2 goes out while r comes in,
// now with all three.
absl::Status RingReduceScatter(Transport& transport, const TensorList& values, ReduceOp op, const Call& call) {
  const int n = transport.size();
  const int rank = transport.rank();
  const int next = (rank + 1) % n;
  const int previous = (rank + n - 1) % n;
  const std::vector<ValueRange> slices = EvenParts(values.size(), n);
  if (call.scratch.incoming.size() < call.chunk_values) call.scratch.incoming.resize(call.chunk_values);
  for (int step = 0; step < n - 1; ++step) {
    const ValueRange out = slices[(rank + 2 * n - step - 1) % n];
    const ValueRange in = slices[(rank + 2 * n - step - 2) % n];
    const uint64_t chunks = std::max(ChunkCount(out, call.chunk_values), ChunkCount(in, call.chunk_values));
    for (uint64_t i = 0; i < chunks; ++i) {
      const TensorList outgoing = values.Slice(Chunk(out, i, call.chunk_values));
      const TensorList incoming = values.Slice(Chunk(in, i, call.chunk_values));
      const absl::Span<float> received = absl::MakeSpan(call.scratch.incoming).first(incoming.size());
      absl::Status status = transport.Exchange({next, BytesOf(ContiguousValues(outgoing, call.scratch.outgoing))},
                                               {previous, MutableBytesOf(received)}, call.deadline);
      if (!status.ok()) return status;
      ReduceIntoList(op, received, incoming);
    }
  }
  const TensorList own = values.Slice(slices[rank]);
  for (absl::Span<float> piece : own.pieces()) FinishReduction(op, n, piece);
  return absl::OkStatus();
}

absl::Status RingAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call) {
  absl::Status status = RingReduceScatter(transport, values, op, call);
  if (!status.ok()) return status;
  return RingAllGather(transport, values, EvenParts(values.size(), transport.size()), call);
}

}  // namespace hooke
