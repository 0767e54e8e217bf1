#ifndef HOOKE_MPI_GROUP_NODE_NODE_PIECES_H_
#define HOOKE_MPI_GROUP_NODE_NODE_PIECES_H_

// Functions that node_arena_collectives.cc and node_staged_collectives.cc share. They walk over a range of a TensorList
// without making a new list.

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Half open: [begin, end), counted in bytes over the whole list.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
};

inline ByteRange BytesOf(const TensorList& values, ValueRange range) {
  const uint64_t value_bytes = SizeOf(values.type());
  return {range.begin * value_bytes, range.end * value_bytes};
}

// Calls body(memory, bytes, offset) for each contiguous piece of the range; `offset` counts from the range's begin.
template <typename Body>
void ForEachPiece(const TensorList& values, ByteRange range, const Body& body) {
  uint64_t piece_begin = 0;
  for (absl::Span<char> piece : values.pieces()) {
    if (piece_begin >= range.end) return;
    const uint64_t begin = std::max(range.begin, piece_begin);
    const uint64_t end = std::min<uint64_t>(range.end, piece_begin + piece.size());
    if (begin < end) body(piece.data() + (begin - piece_begin), end - begin, begin - range.begin);
    piece_begin += piece.size();
  }
}

inline void CopyIn(const TensorList& values, ByteRange range, char* to) {
  ForEachPiece(values, range,
               [to](char* memory, uint64_t bytes, uint64_t offset) { std::memcpy(to + offset, memory, bytes); });
}

inline void CopyOut(const char* from, const TensorList& values, ByteRange range) {
  ForEachPiece(values, range,
               [from](char* memory, uint64_t bytes, uint64_t offset) { std::memcpy(memory, from + offset, bytes); });
}

// Cuts `bytes` into n slices and returns slice i. All have the same length, except that the last ones may be shorter or
// empty. Cuts are at cache lines, so that no two ranks write to the same line.
inline ByteRange LineSlice(uint64_t bytes, int i, int n) {
  constexpr uint64_t kLine = 64;
  const uint64_t slice = ((bytes + n - 1) / n + kLine - 1) / kLine * kLine;
  const uint64_t begin = std::min(bytes, slice * i);
  return {begin, std::min(bytes, begin + slice)};
}

using Sources = absl::InlinedVector<const char*, 16>;
using Destinations = absl::InlinedVector<char*, 16>;

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_NODE_PIECES_H_
