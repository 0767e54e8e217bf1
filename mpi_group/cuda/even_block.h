#ifndef HOOKE_MPI_GROUP_CUDA_EVEN_BLOCK_H_
#define HOOKE_MPI_GROUP_CUDA_EVEN_BLOCK_H_

#include <optional>

#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// NCCL's all-gather and reduce-scatter take one block of memory that is cut into equal parts, in the order of the
// ranks. Returns the bytes of all parts if they are such a block: as long as each other, one behind the other, and all
// in one piece of `values`. `parts` are as in Group::ReduceScatter. nullopt if they are not, or if there is nothing in
// them.
std::optional<absl::Span<char>> EvenBlock(const TensorList& values, absl::Span<const ValueRange> parts);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_EVEN_BLOCK_H_
