#include "mpi_group/tensor_list.h"

#include <algorithm>
#include <cstring>

namespace hooke {

void TensorList::AddBytes(absl::Span<char> bytes) {
  bytes = bytes.first(bytes.size() / SizeOf(type_) * SizeOf(type_));
  if (bytes.empty()) return;
  pieces_.push_back(bytes);
  size_ += bytes.size() / SizeOf(type_);
}

TensorList TensorList::Slice(ValueRange range) const {
  TensorList slice;
  slice.type_ = type_;
  const uint64_t value_bytes = SizeOf(type_);
  const uint64_t first = range.begin * value_bytes;
  const uint64_t last = range.end * value_bytes;
  uint64_t piece_begin = 0;
  for (absl::Span<char> piece : pieces_) {
    if (piece_begin >= last) break;
    const uint64_t begin = std::max(first, piece_begin);
    const uint64_t end = std::min<uint64_t>(last, piece_begin + piece.size());
    if (begin < end) slice.AddBytes(piece.subspan(begin - piece_begin, end - begin));
    piece_begin += piece.size();
  }
  return slice;
}

void Gather(const TensorList& from, absl::Span<char> to) {
  for (absl::Span<char> piece : from.pieces()) {
    std::memcpy(to.data(), piece.data(), piece.size());
    to.remove_prefix(piece.size());
  }
}

void Scatter(absl::Span<const char> from, const TensorList& to) {
  for (absl::Span<char> piece : to.pieces()) {
    std::memcpy(piece.data(), from.data(), piece.size());
    from.remove_prefix(piece.size());
  }
}

}  // namespace hooke
