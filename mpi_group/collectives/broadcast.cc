#include "mpi_group/collectives/broadcast.h"

#include <algorithm>

#include "mpi_group/collectives/message_window.h"

namespace hooke {

absl::Status TreeBroadcast(Transport& transport, const TensorList& values, const TreeShape& shape, int root,
                           const Call& call) {
  const Tree tree = MakeTree(shape, transport.rank(), transport.size(), root);
  const ValueRange all = {0, values.size()};
  const uint64_t chunk_values = ChunkValues(call, values.type());
  const uint64_t chunks = ChunkCount(all, chunk_values);
  const int window = std::max(1, call.window);
  SendWindow sends(transport, call, window * static_cast<int>(tree.children.size()));
  ReceiveWindow receives(transport, call, window);
  for (uint64_t i = 0; i < chunks; ++i) {
    while (tree.parent >= 0 && receives.started() < std::min(chunks, i + window)) {
      const TensorList next = values.Slice(Chunk(all, receives.started(), chunk_values));
      absl::Status status = receives.StartInto(tree.parent, next);
      if (!status.ok()) return status;
    }
    if (tree.parent >= 0) {
      const absl::StatusOr<absl::Span<const char>> received = receives.Next();
      if (!received.ok()) return received.status();
    }
    const TensorList chunk = values.Slice(Chunk(all, i, chunk_values));
    for (int child : tree.children) {
      absl::Status status = sends.Start(child, chunk);
      if (!status.ok()) return status;
    }
  }
  return sends.Finish();
}

absl::Status BinomialBroadcast(Transport& transport, const TensorList& values, int root, const Call& call) {
  return TreeBroadcast(transport, values, BinomialShape(), root, call);
}

}  // namespace hooke
