#ifndef HOOKE_MPI_GROUP_CUDA_STAGED_PASSES_H_
#define HOOKE_MPI_GROUP_CUDA_STAGED_PASSES_H_

// In which order a rank of the staged group sends and takes chunks around the ring. Pure: knows no device, transport or
// values. Used by staged_group.cc.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// A chunk to the next rank and one from the rank before, at the same time; either may be empty.
struct StagedPass {
  ValueRange out;
  ValueRange in;
  // 0: `out` holds the rank's own values from the beginning. Else the number, counted from 1, of the pass whose `in` it
  // is: it can be read as soon as that pass is done.
  uint64_t needs = 0;
  // Of the last step: a reduction of `in` is complete.
  bool last = false;
};

// Rank `rank` of parts.size(); parts as those of a collective, chunks of `chunk_values` values, at least 1. n-1 steps,
// each of which sends a part that the step before brought. In every pass the values in `in` are reduced into the own:
// in the end part r is complete on rank r, the sum of rank r+1's, r+2's, ... and r's values, in this order.
std::vector<StagedPass> ReduceScatterPasses(int rank, absl::Span<const ValueRange> parts, uint64_t chunk_values);
// They take the own values' place: in the end all ranks have all parts.
std::vector<StagedPass> AllGatherPasses(int rank, absl::Span<const ValueRange> parts, uint64_t chunk_values);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_STAGED_PASSES_H_
