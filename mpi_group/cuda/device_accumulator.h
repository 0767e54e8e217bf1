#ifndef HOOKE_MPI_GROUP_CUDA_DEVICE_ACCUMULATOR_H_
#define HOOKE_MPI_GROUP_CUDA_DEVICE_ACCUMULATOR_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Accumulator (mpi_group/reduce/accumulator.h) in GPU memory: sums of 16-bit values are accumulated in it as float32.
// It keeps its memory from call to call, 4 bytes per value of the longest list so far. It works for one stream, whose
// device must be the current one.
class DeviceAccumulator {
 public:
  // Returns the list to reduce in place of `values`: the list itself, or a float32 copy of it if NeedsWideSums. The
  // stream makes the copy, which lasts until the next call. No work of the previous call may be under way any more.
  // `values` must stay until the stream's work is done. RESOURCE_EXHAUSTED: no device memory for the copy.
  absl::StatusOr<TensorList> Start(const TensorList& values, ReduceOp op, int ranks, cudaStream_t stream);

  // If there is a copy, makes the stream round its values in `range` and write them to the original list.
  absl::Status StartStoring(ValueRange range, cudaStream_t stream);

 private:
  DeviceMemory memory_;
  uint64_t memory_bytes_ = 0;
  TensorList values_;
  float* wide_ = nullptr;  // Points into memory_; null if there is no copy.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_DEVICE_ACCUMULATOR_H_
