#include "mpi_group/broadcast.h"

#include <vector>

namespace hooke {
namespace {

struct Tree {
  int parent = -1;            // -1 at the root.
  std::vector<int> children;  // The largest subtree first: it takes longest.
};

// Ranks count from the root. A rank's parent is it without its lowest bit; its children add one lower bit.
//   n = 8: 0 -> 4, 2, 1;  4 -> 6, 5;  6 -> 7;  2 -> 3
Tree BinomialTree(int rank, int n, int root) {
  const int own = (rank - root + n) % n;
  Tree tree;
  int bit = 1;
  while (bit < n && (own & bit) == 0) bit <<= 1;
  if (own != 0) tree.parent = (own - bit + root) % n;
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (own + bit < n) tree.children.push_back((own + bit + root) % n);
  }
  return tree;
}

}  // namespace

absl::Status BinomialBroadcast(Transport& transport, const TensorList& values, int root, const Call& call) {
  const Tree tree = BinomialTree(transport.rank(), transport.size(), root);
  const ValueRange all = {0, values.size()};
  for (uint64_t i = 0; i < ChunkCount(all, call.chunk_values); ++i) {
    const TensorList chunk = values.Slice(Chunk(all, i, call.chunk_values));
    if (tree.parent >= 0) {
      const absl::Span<float> received = ContiguousRoom(chunk, call.scratch.incoming);
      absl::Status status = transport.Receive({tree.parent, MutableBytesOf(received)}, call.deadline);
      if (!status.ok()) return status;
      if (chunk.pieces().size() > 1) Scatter(received, chunk);
    }
    const absl::Span<const float> outgoing = ContiguousValues(chunk, call.scratch.outgoing);
    for (int child : tree.children) {
      absl::Status status = transport.Send({child, BytesOf(outgoing)}, call.deadline);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace hooke
