#ifndef HOOKE_MPI_GROUP_CUDA_STREAM_ORDER_H_
#define HOOKE_MPI_GROUP_CUDA_STREAM_ORDER_H_

// Orders the work of a group's own stream with that of its caller's stream (DeviceGroup::UseStream).

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "mpi_group/cuda/device_memory.h"

namespace hooke {

// Both streams belong to the group's device, which must be the current one. Not thread-safe.
class StreamOrder {
 public:
  // Makes the events. Comes before Begin and End.
  absl::Status Open();

  // Sets the caller's stream. It is the default stream until then.
  void Use(cudaStream_t caller) { caller_ = caller; }

  // Makes later work of `own` wait for all work that the caller's stream has been given so far.
  absl::Status Begin(cudaStream_t own);
  // Makes later work of the caller's stream wait for all work that `own` has been given so far.
  absl::Status End(cudaStream_t own);

 private:
  cudaStream_t caller_ = nullptr;
  Event before_;
  Event after_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_STREAM_ORDER_H_
