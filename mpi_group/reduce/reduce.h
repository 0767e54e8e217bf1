#ifndef HOOKE_MPI_GROUP_REDUCE_REDUCE_H_
#define HOOKE_MPI_GROUP_REDUCE_REDUCE_H_

// The arithmetic of reductions. Pure. 16-bit values are widened to float32, reduced there, and rounded once, to
// nearest, ties to even. The mean of floats is their sum times the rounded reciprocal of their number. The functions
// use the widest vectors of the CPU. Results are bitwise the same on all CPUs, except for the bits of a NaN.

#include <cstdint>

#include "absl/types/span.h"
#include "mpi_group/data_type.h"

namespace hooke {

struct Reduction {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // The divisor of kMean. 0: the sum is not divided yet, because more values follow; FinishReduction divides it.
  int mean_of = 0;
};

// For each of `values` places reduces the values of sources[0], sources[1], ..., in this order, and writes the result
// to all destinations. There is at least one source. A destination is one of the sources or overlaps none of them.
// Memory is aligned for the type.
void Reduce(const Reduction& reduction, absl::Span<const char* const> sources, absl::Span<char* const> destinations,
            uint64_t values);

// Sums 16-bit values without rounding them: to[i] is the float32 sum of the i-th values of sources[0], sources[1], ...,
// in this order. `type` is kBFloat16 or kFloat16. There is at least one source; `to` overlaps none.
void ReduceWide(DataType type, absl::Span<const char* const> sources, absl::Span<float> to);

// Completes a reduction whose `mean_of` was 0: kMean divides by `ranks`, others do nothing.
void FinishReduction(DataType type, ReduceOp op, int ranks, absl::Span<char> values);

// Converts 16-bit values to float32, and back with rounding. `type` is kBFloat16 or kFloat16; both sides have the same
// number of values.
void Widen(DataType type, absl::Span<const char> from, absl::Span<float> to);
void Narrow(DataType type, absl::Span<const float> from, absl::Span<char> to);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_REDUCE_H_
