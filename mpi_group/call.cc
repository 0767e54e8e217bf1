#include "mpi_group/call.h"

#include <algorithm>

namespace hooke {

absl::Span<float> ContiguousRoom(const TensorList& list, std::vector<float>& buffer) {
  if (list.empty()) return {};
  if (list.pieces().size() == 1) return list.pieces().front();
  if (buffer.size() < list.size()) buffer.resize(list.size());
  return absl::MakeSpan(buffer).first(list.size());
}

absl::Span<const float> ContiguousValues(const TensorList& list, std::vector<float>& buffer) {
  const absl::Span<float> room = ContiguousRoom(list, buffer);
  if (list.pieces().size() > 1) Gather(list, room);
  return room;
}

std::vector<ValueRange> EvenParts(uint64_t values, int n) {
  std::vector<ValueRange> parts(n);
  const uint64_t count = n;
  uint64_t begin = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = values / count + (i < values % count ? 1 : 0);
    parts[i] = {begin, begin + length};
    begin += length;
  }
  return parts;
}

ValueRange Chunk(ValueRange range, uint64_t index, uint64_t chunk_values) {
  const uint64_t begin = std::min(range.begin + index * chunk_values, range.end);
  return {begin, std::min(begin + chunk_values, range.end)};
}

uint64_t ChunkCount(ValueRange range, uint64_t chunk_values) {
  return (range.size() + chunk_values - 1) / chunk_values;
}

}  // namespace hooke
