#ifndef HOOKE_MPI_GROUP_CUDA_STAGED_PASSES_H_
#define HOOKE_MPI_GROUP_CUDA_STAGED_PASSES_H_

// Plans the order in which a rank of the staged group sends and receives chunks around the ring. Pure: knows no device,
// transport or values.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// A pass sends a chunk to the next rank and receives one from the previous rank, at the same time; either may be empty.
struct StagedPass {
  ValueRange out;
  ValueRange in;
  // The pass, counted from 1, that must be done before `out` can be read, because its `in` is the same chunk. 0: `out`
  // holds the rank's own values and can be read from the beginning.
  uint64_t needs = 0;
  // True in the last step, after which a reduction of `in` is complete.
  bool last = false;
};

// Returns the passes of rank `rank` in a reduce-scatter among parts.size() ranks, in chunks of `chunk_values` values,
// at least 1. It takes n-1 steps; each but the first sends the part that the previous step brought. In every pass the
// values received in `in` are reduced into the rank's own. In the end part r is complete on rank r: the sum of the
// values of ranks r+1, r+2, ..., r, in this order.
std::vector<StagedPass> ReduceScatterPasses(int rank, absl::Span<const ValueRange> parts, uint64_t chunk_values);
// Returns the passes of rank `rank` in an all-gather: received values replace the rank's own, and in the end all ranks
// have all parts.
std::vector<StagedPass> AllGatherPasses(int rank, absl::Span<const ValueRange> parts, uint64_t chunk_values);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_STAGED_PASSES_H_
