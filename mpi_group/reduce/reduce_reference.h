#ifndef HOOKE_MPI_GROUP_REDUCE_REDUCE_REFERENCE_H_
#define HOOKE_MPI_GROUP_REDUCE_REDUCE_REFERENCE_H_

// Slow, obvious versions of the functions of reduce.h, with the same contracts. Tests compare the fast ones with them.

#include <cstdint>

#include "absl/types/span.h"
#include "mpi_group/reduce/reduce.h"

namespace hooke {

void ReferenceReduce(const Reduction& reduction, absl::Span<const char* const> sources,
                     absl::Span<char* const> destinations, uint64_t values);

void ReferenceReduceWide(DataType type, absl::Span<const char* const> sources, absl::Span<float> to);

void ReferenceWiden(DataType type, absl::Span<const char> from, absl::Span<float> to);
void ReferenceNarrow(DataType type, absl::Span<const float> from, absl::Span<char> to);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_REDUCE_REFERENCE_H_
