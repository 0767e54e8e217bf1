#ifndef HOOKE_MPI_GROUP_CALL_H_
#define HOOKE_MPI_GROUP_CALL_H_

// The arguments that every collective takes besides its transport and its values: a deadline, working memory, and the
// sizes in which messages are sent.

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Working memory of collectives. A group keeps it from call to call, so that calls stop allocating once it has grown.
struct Scratch {
  // Buffers of the messages under way, one vector per message (collectives/message_window.h).
  std::vector<std::vector<char>> outgoing;
  std::vector<std::vector<char>> incoming;
  // Room for values that an algorithm needs contiguous, such as those of a list or those received.
  std::vector<char> working;
  // The float32 sums of one slice of 16-bit values.
  std::vector<float> sums;
};

struct Call {
  absl::Time deadline;
  Scratch& scratch;  // Borrowed for the call; no other call may use it meanwhile.
  // Size of the longest message; all ranks pass the same. It should fit a core's cache, where a chunk stays while it is
  // received, reduced and sent on. A multiple of 8, so that it holds whole values of any type.
  uint64_t chunk_bytes = uint64_t{256} << 10;
  // Largest number of messages under way at once from or to one peer: while one is reduced, others travel. Only
  // algorithms that cut their values into chunks use it. All ranks pass the same number, at least 1.
  int window = 4;
};

// Returns contiguous memory of list.bytes() bytes: the list's own if it has at most one piece, else room in `buffer`.
// The content of room in `buffer` is unspecified.
absl::Span<char> ContiguousRoom(const TensorList& list, std::vector<char>& buffer);
// Returns the values of `list` as contiguous memory. They are copied to `buffer` only if the list has several pieces.
absl::Span<const char> ContiguousValues(const TensorList& list, std::vector<char>& buffer);

// Cuts [0, values) into n parts in order. Their lengths differ by at most one value; the longer parts come first.
using Parts = absl::InlinedVector<ValueRange, 8>;
Parts EvenParts(uint64_t values, int n);

// Hash functions for CallLabel::detail, by which ranks notice that their calls differ. Mix() adds a value to a hash.
// HashOf() hashes parts. Equal inputs give equal hashes on all ranks; different inputs almost certainly give different
// ones.
uint64_t Mix(uint64_t hash, uint64_t value);
uint64_t HashOf(absl::Span<const ValueRange> parts);

// Chunk `index` of a range cut into chunks of `values` values; empty past the range's end.
ValueRange Chunk(ValueRange range, uint64_t index, uint64_t values);
// Returns the number of chunks of `values` values in a range.
uint64_t ChunkCount(ValueRange range, uint64_t values);

// How many values of `type` fit one of `call`'s chunks; at least 1.
uint64_t ChunkValues(const Call& call, DataType type);
// The parts that travel around a ring, and the limits of the messages they are cut into.
struct RingParts {
  uint64_t longest = 0;  // The number of values of the longest part.
  uint64_t value_bytes = 1;
  uint64_t chunk_bytes = 0;  // Call::chunk_bytes.
  int window = 1;            // Call::window.
};
// Returns how many values a ring's chunks have. If a part were a single message, the link would be idle while a rank
// reduces it. So a part is cut into at least a window of chunks, but none shorter than 16 KiB.
uint64_t RingChunkValues(const RingParts& parts);

// Returns the number of chunks of `values` values in the longest of the ranges.
uint64_t LongestChunkCount(absl::Span<const ValueRange> ranges, uint64_t values);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CALL_H_
