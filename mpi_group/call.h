#ifndef HOOKE_MPI_GROUP_CALL_H_
#define HOOKE_MPI_GROUP_CALL_H_

// What every collective takes beside its transport and values: until when, with which working memory, in which
// portions.

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Working memory of collectives. A group keeps one over its calls, so that a call allocates nothing once it has grown.
struct Scratch {
  std::vector<float> outgoing;
  std::vector<float> incoming;
};

struct Call {
  absl::Time deadline;
  Scratch& scratch;  // For the call; no other call uses it meanwhile.
  // Values per message. All ranks pass the same. A portion that is sent, received and reduced stays in a core's cache
  // meanwhile.
  uint64_t chunk_values = 65536;
};

// The values of `list` as contiguous memory: its own where it has at most one piece, else room in `buffer`, whose
// content is unspecified.
absl::Span<float> ContiguousRoom(const TensorList& list, std::vector<float>& buffer);
// The same, holding the list's values.
absl::Span<const float> ContiguousValues(const TensorList& list, std::vector<float>& buffer);

// Part i of n is as long as the others, or one longer for the first ones; the parts follow each other and cover [0,
// values).
std::vector<ValueRange> EvenParts(uint64_t values, int n);

// Portion `index` of a range cut into portions of `chunk_values`; empty past the range's end.
ValueRange Chunk(ValueRange range, uint64_t index, uint64_t chunk_values);
uint64_t ChunkCount(ValueRange range, uint64_t chunk_values);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CALL_H_
