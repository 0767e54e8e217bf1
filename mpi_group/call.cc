#include "mpi_group/call.h"

#include <algorithm>

namespace hooke {

absl::Span<char> ContiguousRoom(const TensorList& list, std::vector<char>& buffer) {
  if (list.empty()) return {};
  if (list.pieces().size() == 1) return list.pieces().front();
  if (buffer.size() < list.bytes()) buffer.resize(list.bytes());
  return absl::MakeSpan(buffer).first(list.bytes());
}

absl::Span<const char> ContiguousValues(const TensorList& list, std::vector<char>& buffer) {
  const absl::Span<char> room = ContiguousRoom(list, buffer);
  if (list.pieces().size() > 1) Gather(list, room);
  return room;
}

Parts EvenParts(uint64_t values, int n) {
  Parts parts(n);
  const uint64_t count = n;
  uint64_t begin = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = values / count + (i < values % count ? 1 : 0);
    parts[i] = {begin, begin + length};
    begin += length;
  }
  return parts;
}

// Adds 1, so that a value of 0 changes a hash of 0 too.
uint64_t Mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9E3779B97F4A7C15u + 1; }

uint64_t HashOf(absl::Span<const ValueRange> parts) {
  uint64_t hash = 0;
  for (const ValueRange& part : parts) {
    for (uint64_t end : {part.begin, part.end}) hash = Mix(hash, end);
  }
  return hash;
}

ValueRange Chunk(ValueRange range, uint64_t index, uint64_t values) {
  const uint64_t begin = std::min(range.begin + index * values, range.end);
  return {begin, std::min(begin + values, range.end)};
}

uint64_t ChunkCount(ValueRange range, uint64_t values) { return (range.size() + values - 1) / values; }

uint64_t ChunkValues(const Call& call, DataType type) { return std::max<uint64_t>(1, call.chunk_bytes / SizeOf(type)); }

uint64_t RingChunkValues(const RingParts& parts) {
  constexpr uint64_t kShortChunk = uint64_t{16} << 10;
  const uint64_t window = std::max(1, parts.window);
  const uint64_t share = (parts.longest + window - 1) / window;
  const uint64_t chunk = std::max<uint64_t>(1, parts.chunk_bytes / parts.value_bytes);
  return std::min(chunk, std::max(share, kShortChunk / parts.value_bytes));
}

uint64_t LongestChunkCount(absl::Span<const ValueRange> ranges, uint64_t values) {
  uint64_t longest = 0;
  for (ValueRange range : ranges) longest = std::max(longest, ChunkCount(range, values));
  return longest;
}

}  // namespace hooke
