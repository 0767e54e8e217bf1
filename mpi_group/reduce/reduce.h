#ifndef HOOKE_MPI_GROUP_REDUCE_REDUCE_H_
#define HOOKE_MPI_GROUP_REDUCE_REDUCE_H_

// The arithmetic of reductions. Pure. Values of 16 bits are widened to float32, reduced there and rounded once, to the
// nearest, ties to even. The mean of floats is their sum times the rounded reciprocal of their number. Done with the
// widest vectors of the CPU it runs on; the result is the same on all, to the bit, but for which NaN a NaN is.

#include <cstdint>

#include "absl/types/span.h"
#include "mpi_group/data_type.h"

namespace hooke {

struct Reduction {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // For kMean: what the sum is divided by. 0: it is not divided, for there is more to come (FinishReduction).
  int mean_of = 0;
};

// For each of `values` places: reduces what is there in sources[0], sources[1], ..., in this order, and writes the
// result to all destinations. A destination is one of the sources or overlaps none of them; at least one source. Memory
// is aligned as the type asks for.
void Reduce(const Reduction& reduction, absl::Span<const char* const> sources, absl::Span<char* const> destinations,
            uint64_t values);

// The sums of 16-bit values before they are rounded: to[i] = what is i-th in sources[0] + sources[1] + ..., in this
// order, as float32. `type` is kBFloat16 or kFloat16; at least one source; `to` overlaps none.
void ReduceWide(DataType type, absl::Span<const char* const> sources, absl::Span<float> to);

// Of two: into = into op from. As many bytes.
void ReduceInto(const Reduction& reduction, absl::Span<const char> from, absl::Span<char> into);

// What is left to do where `mean_of` was 0: for kMean the division by `ranks`.
void FinishReduction(DataType type, ReduceOp op, int ranks, absl::Span<char> values);

// Values of 16 bits as float32, and back. `type` is kBFloat16 or kFloat16; as many values.
void Widen(DataType type, absl::Span<const char> from, absl::Span<float> to);
void Narrow(DataType type, absl::Span<const float> from, absl::Span<char> to);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_REDUCE_H_
