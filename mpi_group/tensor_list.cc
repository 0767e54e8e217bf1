#include "mpi_group/tensor_list.h"

#include <algorithm>
#include <utility>

namespace hooke {

TensorList::TensorList(absl::Span<float> values) : TensorList(std::vector<absl::Span<float>>{values}) {}

TensorList::TensorList(std::vector<absl::Span<float>> parts) : pieces_(std::move(parts)) {
  pieces_.erase(std::remove_if(pieces_.begin(), pieces_.end(), [](absl::Span<float> piece) { return piece.empty(); }),
                pieces_.end());
  for (absl::Span<float> piece : pieces_) size_ += piece.size();
}

TensorList TensorList::Slice(ValueRange range) const {
  TensorList slice;
  uint64_t piece_begin = 0;
  for (absl::Span<float> piece : pieces_) {
    if (piece_begin >= range.end) break;
    const uint64_t begin = std::max(range.begin, piece_begin);
    const uint64_t end = std::min<uint64_t>(range.end, piece_begin + piece.size());
    if (begin < end) {
      slice.pieces_.push_back(piece.subspan(begin - piece_begin, end - begin));
      slice.size_ += end - begin;
    }
    piece_begin += piece.size();
  }
  return slice;
}

void Gather(const TensorList& from, absl::Span<float> to) {
  for (absl::Span<float> piece : from.pieces()) {
    std::copy(piece.begin(), piece.end(), to.begin());
    to.remove_prefix(piece.size());
  }
}

void Scatter(absl::Span<const float> from, const TensorList& to) {
  for (absl::Span<float> piece : to.pieces()) {
    std::copy_n(from.begin(), piece.size(), piece.begin());
    from.remove_prefix(piece.size());
  }
}

}  // namespace hooke
