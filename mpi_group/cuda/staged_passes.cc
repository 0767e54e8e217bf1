#include "mpi_group/cuda/staged_passes.h"

#include <algorithm>

namespace hooke {
namespace {

// In each step part rank - shift - step goes out while the part before it comes in, chunk by chunk.
std::vector<StagedPass> RingPasses(int rank, absl::Span<const ValueRange> parts, uint64_t chunk_values, int shift) {
  const int n = static_cast<int>(parts.size());
  std::vector<StagedPass> passes;
  uint64_t previous_step = 0;  // First pass of the previous step.
  for (int step = 0; step < n - 1; ++step) {
    const ValueRange out = parts[(rank + 2 * n - step - shift) % n];
    const ValueRange in = parts[(rank + 2 * n - step - shift - 1) % n];
    const uint64_t first = passes.size();
    const uint64_t chunks = std::max(ChunkCount(out, chunk_values), ChunkCount(in, chunk_values));
    passes.reserve(first + chunks);
    for (uint64_t i = 0; i < chunks; ++i) {
      // The outgoing chunk came in as the same chunk of the previous step.
      const ValueRange chunk = Chunk(out, i, chunk_values);
      const uint64_t needs = step == 0 || chunk.size() == 0 ? 0 : previous_step + i + 1;
      passes.push_back({chunk, Chunk(in, i, chunk_values), needs, step == n - 2});
    }
    previous_step = first;
  }
  return passes;
}

}  // namespace

std::vector<StagedPass> ReduceScatterPasses(int rank, absl::Span<const ValueRange> parts, uint64_t chunk_values) {
  return RingPasses(rank, parts, chunk_values, /*shift=*/1);
}

std::vector<StagedPass> AllGatherPasses(int rank, absl::Span<const ValueRange> parts, uint64_t chunk_values) {
  return RingPasses(rank, parts, chunk_values, /*shift=*/0);
}

}  // namespace hooke
