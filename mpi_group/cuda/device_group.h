#ifndef HOOKE_MPI_GROUP_CUDA_DEVICE_GROUP_H_
#define HOOKE_MPI_GROUP_CUDA_DEVICE_GROUP_H_

#include <cuda_runtime_api.h>

#include "mpi_group/group.h"

namespace hooke {

// A Group whose values lie in the memory of one device.
//
// Order. The group works on a stream of its own, of the device's highest priority. Each call is ordered with one stream
// of the caller:
// - The call's work on the device comes after all work that the caller's stream was given before the call. So
//   gradients may still be written when the call begins.
// - Work that the caller's stream is given later, by any thread, comes after the call's work.
// A call returns after the device has done its work, so the host may use the result at once. Its deadline covers the
// work that the call comes after.
//
// Device. A call makes the group's device current, and afterwards the one that was current before (device_scope.h). So
// the caller need not set a device.
class DeviceGroup : public Group {
 public:
  // Sets the caller's stream for all later calls. It belongs to the group's device and must outlive the calls. At first
  // it is the default stream, null. All work of streams that were made without cudaStreamNonBlocking is ordered with
  // the default stream, too.
  virtual void UseStream(cudaStream_t stream) = 0;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_DEVICE_GROUP_H_
