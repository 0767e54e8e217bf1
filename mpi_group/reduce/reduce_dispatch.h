#ifndef HOOKE_MPI_GROUP_REDUCE_REDUCE_DISPATCH_H_
#define HOOKE_MPI_GROUP_REDUCE_REDUCE_DISPATCH_H_

// Finds the compiled variants of reduce.h that this machine can run.

#include "absl/types/span.h"
#include "mpi_group/reduce/reduce_variant.h"

namespace hooke {

// The variants that the CPU and the operating system support, the fastest first. The list is never empty and is the
// same on each call. Any thread may call this. reduce.cc takes the first; tests and benchmarks run all.
absl::Span<const ReduceVariant* const> SupportedReduceVariants();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_REDUCE_DISPATCH_H_
