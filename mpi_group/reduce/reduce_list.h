#ifndef HOOKE_MPI_GROUP_REDUCE_REDUCE_LIST_H_
#define HOOKE_MPI_GROUP_REDUCE_REDUCE_LIST_H_

#include <cstddef>

#include "absl/types/span.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Reduces the values of `others` into those of `list`, by Reduce(). Each of `others` is contiguous and has as many
// bytes as the list. The list's own values come after others[place - 1] and before others[place]. The reduction's type
// is the list's.
void ReduceIntoList(const Reduction& reduction, absl::Span<const absl::Span<const char>> others, size_t place,
                    const TensorList& list);

// Rounds float32 values to the list's 16-bit type and stores them in the list, which has equally many values.
void NarrowIntoList(absl::Span<const float> from, const TensorList& list);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_REDUCE_LIST_H_
