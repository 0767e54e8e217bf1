#include "mpi_group/collectives/rooted_reduce.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "mpi_group/collectives/message_window.h"
#include "mpi_group/reduce/accumulator.h"
#include "mpi_group/reduce/reduce_list.h"

namespace hooke {
namespace {

// Reduces the children's values into this rank's own, chunk by chunk, and sends each result to the parent.
absl::Status ReduceUpwards(Transport& transport, const TensorList& values, ReduceOp op, const Tree& tree,
                           const Call& call) {
  const ValueRange all = {0, values.size()};
  const uint64_t chunk_values = ChunkValues(call, values.type());
  const uint64_t chunks = ChunkCount(all, chunk_values);
  const int window = std::max(1, call.window);
  const Reduction reduction = {values.type(), op, tree.parent < 0 ? transport.size() : 0};
  SendWindow sends(transport, call, window);
  ReceiveWindow receives(transport, call, window * static_cast<int>(tree.children.size()));
  absl::InlinedVector<absl::Span<const char>, 8> received(tree.children.size());
  uint64_t started = 0;
  for (uint64_t i = 0; i < chunks; ++i) {
    for (; started < std::min(chunks, i + window); ++started) {
      const TensorList next = values.Slice(Chunk(all, started, chunk_values));
      for (int child : tree.children) {
        absl::Status status = receives.StartBeside(child, next);
        if (!status.ok()) return status;
      }
    }
    for (absl::Span<const char>& from_child : received) {
      const absl::StatusOr<absl::Span<const char>> next = receives.Next();
      if (!next.ok()) return next.status();
      from_child = *next;
    }
    const TensorList chunk = values.Slice(Chunk(all, i, chunk_values));
    if (!received.empty()) ReduceIntoList(reduction, received, /*place=*/0, chunk);
    if (tree.parent < 0) continue;
    absl::Status status = sends.Start(tree.parent, chunk);
    if (!status.ok()) return status;
  }
  return sends.Finish();
}

}  // namespace

absl::Status TreeReduce(Transport& transport, const TensorList& values, ReduceOp op, const TreeShape& shape, int root,
                        const Call& call) {
  const int n = transport.size();
  Accumulator accumulator(values, op, n, call.scratch);
  absl::Status status =
      ReduceUpwards(transport, accumulator.list(), op, MakeTree(shape, transport.rank(), n, root), call);
  if (status.ok() && transport.rank() == root) accumulator.Store();
  return status;
}

}  // namespace hooke
