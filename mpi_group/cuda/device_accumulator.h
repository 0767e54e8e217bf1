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

// Accumulator (mpi_group/reduce/accumulator.h) on a device: where sums of 16-bit values form, rank after rank. It keeps
// its memory from call to call, 4 bytes per value of the longest list so far. For one stream, whose device is the
// current one. Used by staged_group.cc.
class DeviceAccumulator {
 public:
  // What to reduce in place of `values`: the list itself; or, where NeedsWideSums, a float32 copy of it, which the
  // stream makes, and which lasts until the next call. Nothing of the call before is under way any more. `values`
  // outlives what is given to the stream. RESOURCE_EXHAUSTED: no device memory for the copy.
  absl::StatusOr<TensorList> Start(const TensorList& values, ReduceOp op, int ranks, cudaStream_t stream);

  // Gives it to the stream to write the copy's values in `range`, rounded, to the list, if there is a copy.
  absl::Status StartStoring(ValueRange range, cudaStream_t stream);

 private:
  DeviceMemory memory_;
  uint64_t memory_bytes_ = 0;
  TensorList values_;
  float* wide_ = nullptr;  // In memory_; null if there is no copy.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_DEVICE_ACCUMULATOR_H_
