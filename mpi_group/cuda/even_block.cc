#include "mpi_group/cuda/even_block.h"

namespace hooke {

std::optional<absl::Span<char>> EvenBlock(const TensorList& values, absl::Span<const ValueRange> parts) {
  if (parts.empty()) return std::nullopt;
  uint64_t begin = parts.front().begin;
  for (const ValueRange& part : parts) {
    if (part.begin != begin || part.size() != parts.front().size()) return std::nullopt;
    begin = part.end;
  }
  const TensorList block = values.Slice({parts.front().begin, parts.back().end});
  if (block.pieces().size() != 1) return std::nullopt;
  return block.pieces().front();
}

}  // namespace hooke
