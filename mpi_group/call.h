#ifndef HOOKE_MPI_GROUP_CALL_H_
#define HOOKE_MPI_GROUP_CALL_H_

// What every collective takes beside its transport and values: until when, with which working memory, in which
// portions.

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Working memory of collectives. A group keeps one over its calls, so that a call allocates nothing once it has grown.
struct Scratch {
  // Of one message under way each (collectives/message_window.h).
  std::vector<std::vector<char>> outgoing;
  std::vector<std::vector<char>> incoming;
  // Of a whole list (reduce/accumulator.h, collectives/reference.h).
  std::vector<char> working;
  // Of a slice (node/two_level_wide.h).
  std::vector<float> sums;
};

struct Call {
  absl::Time deadline;
  Scratch& scratch;  // For the call; no other call uses it meanwhile.
  // Of the longest message; all ranks pass the same. A portion that is sent, received and reduced stays in a core's
  // cache meanwhile. A multiple of 8.
  uint64_t chunk_bytes = uint64_t{256} << 10;
  // Messages under way at once from or to a peer, where an algorithm cuts its values into chunks: while one is reduced,
  // others travel. All ranks pass the same; at least 1.
  int window = 4;
};

// The values of `list` as contiguous memory: its own where it has at most one piece, else room in `buffer`, whose
// content is unspecified.
absl::Span<char> ContiguousRoom(const TensorList& list, std::vector<char>& buffer);
// The same, holding the list's values.
absl::Span<const char> ContiguousValues(const TensorList& list, std::vector<char>& buffer);

// Part i of n is as long as the others, or one longer for the first ones; the parts follow each other and cover [0,
// values).
using Parts = absl::InlinedVector<ValueRange, 8>;
Parts EvenParts(uint64_t values, int n);

// For a CallLabel's detail: one more thing that ranks must agree on; and parts. The same on all ranks for the same, and
// in all likelihood for no other.
uint64_t Mix(uint64_t hash, uint64_t value);
uint64_t HashOf(absl::Span<const ValueRange> parts);

// Portion `index` of a range cut into portions of `values` values; empty past the range's end.
ValueRange Chunk(ValueRange range, uint64_t index, uint64_t values);
uint64_t ChunkCount(ValueRange range, uint64_t values);

// Of one of `call`'s chunks; at least 1.
uint64_t ChunkValues(const Call& call, DataType type);
// Of the longest of several ranges.
uint64_t LongestChunkCount(absl::Span<const ValueRange> ranges, uint64_t values);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CALL_H_
