#ifndef HOOKE_MPI_GROUP_CUDA_NCCL_MEMORY_H_
#define HOOKE_MPI_GROUP_CUDA_NCCL_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "mpi_group/cuda/nccl_calls.h"

namespace hooke {

struct FreeNcclMemory {
  decltype(&ncclMemFree) free = nullptr;  // Null: the memory is CUDA's.

  void operator()(char* memory) const;
};

// Device memory, from NCCL's allocator if get_deleter().free is set. Such memory can be registered with a communicator,
// so that NCCL moves values without copies. It must be deregistered, or the communicator gone, before it is freed.
using NcclMemory = std::unique_ptr<char, FreeNcclMemory>;

// Zeroed memory of the current device; null for 0 bytes. It comes from CUDA's allocator if the library has no allocator
// or its allocator fails, as on devices that it does not support. RESOURCE_EXHAUSTED: no memory left.
absl::StatusOr<NcclMemory> AllocateNcclMemory(const NcclCalls& nccl, uint64_t bytes);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_NCCL_MEMORY_H_
