#ifndef HOOKE_MPI_GROUP_REDUCE_REDUCE_LIST_H_
#define HOOKE_MPI_GROUP_REDUCE_REDUCE_LIST_H_

#include <cstddef>

#include "absl/types/span.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Reduce() of a list's values and those of others, contiguous, each as many bytes as the list; the result is the
// list's. The list's own values are taken as number `place` of all: after others[place - 1], before others[place]. The
// reduction's type is the list's.
void ReduceIntoList(const Reduction& reduction, absl::Span<const absl::Span<const char>> others, size_t place,
                    const TensorList& list);

// Rounds float32 values, as many as the list has, to its 16-bit ones.
void NarrowIntoList(absl::Span<const float> from, const TensorList& list);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_REDUCE_LIST_H_
