#ifndef HOOKE_MPI_GROUP_CUDA_DEVICE_SCOPE_H_
#define HOOKE_MPI_GROUP_CUDA_DEVICE_SCOPE_H_

// Checks a device's number, and makes a device the current one of the calling thread and afterwards the one that was
// current before.

#include "absl/status/status.h"

namespace hooke {

// FAILED_PRECONDITION: there is no such device, or CUDA cannot be used; the message has its reason. Makes no context.
absl::Status CheckDevice(int device);

// CUDA makes a context, some hundred megabytes of device memory, on each device that becomes current or that a call
// uses while it is current. A thread's current device is 0 until it chooses another. So each public call of a device
// group begins with a DeviceScope, before any other call of CUDA or NCCL.
//
// One case is left as it is: if the process has no context on the device that was current before, that device does not
// become current again, because this would make a context there.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  // Whether the device is the current one. INTERNAL: CUDA's error.
  const absl::Status& status() const { return status_; }

 private:
  int before_ = -1;  // The device that becomes current again; -1: none does.
  absl::Status status_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_DEVICE_SCOPE_H_
