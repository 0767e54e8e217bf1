#ifndef HOOKE_MPI_GROUP_CUDA_STAGED_GROUP_H_
#define HOOKE_MPI_GROUP_CUDA_STAGED_GROUP_H_

// A DeviceGroup for values in GPU memory, whose bytes travel over a Transport. It is for MPI libraries that are not
// CUDA-aware, and for nodes without NCCL between them. The GPU reduces the values. Host memory holds only page-locked
// chunks on their way, several at once, so that copies in both directions, kernels and messages overlap. As in the
// staging of S-Caffe and MVAPICH2, the host's cores neither reduce nor copy.

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/cuda/device_group.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

struct StagedGroupOptions {
  int device = 0;
  absl::Duration deadline = absl::Seconds(30);  // Deadline of each collective.
  uint64_t chunk_bytes = 1 << 20;               // Size of a message. All ranks pass the same, a multiple of 8.
};

// Makes the group. FAILED_PRECONDITION: no such device. RESOURCE_EXHAUSTED: no memory for the chunks.
//
// Lists of all calls must lie in memory of the device (INVALID_ARGUMENT otherwise); AllocateShared gives such memory.
// Sums of 16-bit types are rounded once. Among more than two ranks they travel as float32. For them the group keeps
// device memory of 4 bytes per value of the longest list so far. Allocating more of it may wait for all work on the
// device. A call that fails or differs on one rank fails on all ranks soon (Transport::Settle).
absl::StatusOr<std::unique_ptr<DeviceGroup>> MakeStagedGroup(std::unique_ptr<Transport> transport,
                                                             const StagedGroupOptions& options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_STAGED_GROUP_H_
