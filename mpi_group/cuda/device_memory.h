#ifndef HOOKE_MPI_GROUP_CUDA_DEVICE_MEMORY_H_
#define HOOKE_MPI_GROUP_CUDA_DEVICE_MEMORY_H_

// Owners of device memory, page-locked host memory, streams and events; and a check of where a pointer points.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

struct FreeDeviceMemory {
  void operator()(char* memory) const { cudaFree(memory); }
};
struct FreePinnedMemory {
  void operator()(char* memory) const { cudaFreeHost(memory); }
};
struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using DeviceMemory = std::unique_ptr<char, FreeDeviceMemory>;
using PinnedMemory = std::unique_ptr<char, FreePinnedMemory>;
using Stream = std::unique_ptr<CUstream_st, DestroyStream>;
using Event = std::unique_ptr<CUevent_st, DestroyEvent>;

// Each function makes its object on the current device. RESOURCE_EXHAUSTED: no memory left. Device memory is zeroed
// before the call returns, so any stream may use it. A stream has the device's highest priority: others wait for what a
// group does. It does not wait for the default stream.
absl::StatusOr<DeviceMemory> AllocateDeviceMemory(uint64_t bytes);
absl::StatusOr<PinnedMemory> AllocatePinnedMemory(uint64_t bytes);
absl::StatusOr<Stream> MakeStream();
absl::StatusOr<Event> MakeEvent();
// Sets all bytes to 0 before it returns.
absl::Status ZeroDeviceMemory(char* memory, uint64_t bytes);

// Checks that lists lie in a device's memory. Asking CUDA costs microseconds, so it asks once per piece and remembers
// the answer: addresses that were on the device are taken to stay there. It remembers a bounded number. Not
// thread-safe.
class PointerKinds {
 public:
  // OK if all pieces lie in memory of `device`, or in managed memory. Otherwise INVALID_ARGUMENT, which says where a
  // piece lies.
  absl::Status CheckOnDevice(const TensorList& values, int device);

 private:
  absl::flat_hash_map<const char*, uint64_t> known_;  // Address of a piece on the device -> its bytes.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_DEVICE_MEMORY_H_
