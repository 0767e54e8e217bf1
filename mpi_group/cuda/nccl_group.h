#ifndef HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_
#define HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_

// A DeviceGroup of ranks with a GPU each, by NCCL: values lie in device memory, and kernels on the devices move and
// reduce them. device_group.h says how calls are ordered with the caller's stream.
//
// It differs from other groups in some points:
// - Sums of 16-bit types are rounded wherever NCCL rounds them, not once.
// - For the mean of floats each rank's values are first multiplied with the reciprocal of the number of ranks, rounded
//   to the type. So a mean does not overflow. If that number is no power of two, means of 16-bit types are less exact
//   than a sum that is divided: the reciprocal is off by up to 0.2 % in bfloat16 and 0.03 % in float16.
// - Minima and maxima with NaN are as NCCL makes them.
// - Making the group and AllocateShared fail on all ranks, with the reason, if they fail on one. In all other calls a
//   rank that fails does not tell the others, which wait for it until their deadlines.
//
// A group that fails aborts its communicator at once, so that no kernel of NCCL waits on this rank's device any longer.

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/cuda/device_group.h"
#include "mpi_group/cuda/nccl_calls.h"

namespace hooke {

struct NcclGroupOptions {
  int device = 0;  // This rank's device. No two ranks of a node share one.
  // Deadline of making the group, and of each collective.
  absl::Duration deadline = absl::Seconds(30);
};

// Makes a group of the ranks of `control`. Collective. `control` brings the ranks together and carries a few bytes; it
// must outlive the result. `nccl` is what LoadNccl() returned, even if that is an error: then all ranks get it.
// FAILED_PRECONDITION: no NCCL, or no such device. DEADLINE_EXCEEDED: not all ranks came. INTERNAL: an error of CUDA or
// NCCL.
//
// Lists lie in the device's memory and have the same pieces on all ranks, because each piece is a call of NCCL.
//
// AllocateShared gives device memory. It comes from NCCL's allocator and is registered with the communicator, where all
// ranks can do both. Elsewhere it is CUDA's ordinary memory, or not registered.
absl::StatusOr<std::unique_ptr<DeviceGroup>> MakeNcclGroup(Group& control, const absl::StatusOr<NcclCalls>& nccl,
                                                           const NcclGroupOptions& options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_
