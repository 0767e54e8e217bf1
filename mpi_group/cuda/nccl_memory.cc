#include "mpi_group/cuda/nccl_memory.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "mpi_group/cuda/device_memory.h"

namespace hooke {

void FreeNcclMemory::operator()(char* memory) const {
  if (free == nullptr) {
    cudaFree(memory);
  } else {
    free(memory);
  }
}

absl::StatusOr<NcclMemory> AllocateNcclMemory(const NcclCalls& nccl, uint64_t bytes) {
  if (bytes == 0) return NcclMemory();
  void* allocated = nullptr;
  if (nccl.mem_alloc != nullptr && nccl.mem_free != nullptr && nccl.mem_alloc(&allocated, bytes) == ncclSuccess) {
    NcclMemory memory(static_cast<char*>(allocated), FreeNcclMemory{nccl.mem_free});
    absl::Status status = ZeroDeviceMemory(memory.get(), bytes);
    if (!status.ok()) return status;
    return memory;
  }
  absl::StatusOr<DeviceMemory> plain = AllocateDeviceMemory(bytes);
  if (!plain.ok()) return plain.status();
  return NcclMemory(plain->release());
}

}  // namespace hooke
