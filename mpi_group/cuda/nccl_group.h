#ifndef HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_
#define HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_

// A Group of ranks with a GPU each, by NCCL: values lie in device memory, and kernels on the devices move and reduce
// them.
//
// It differs from other groups in some points. Sums of 16-bit types are rounded wherever NCCL rounds them, not once. A
// mean is infinite if its sum is out of the type's range. Minima and maxima with NaN are as NCCL makes them. Except for
// AllocateShared, a rank that fails does not tell the others, which wait for it until their deadlines. Every call
// returns after the device has done its work.

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/cuda/nccl_calls.h"
#include "mpi_group/group.h"

namespace hooke {

struct NcclGroupOptions {
  int device = 0;  // This rank's device. No two ranks of a node share one.
  // Deadline of making the group, and of each collective.
  absl::Duration deadline = absl::Seconds(30);
};

// Makes a group of the ranks of `control`. Collective. `control` brings the ranks together and carries a few bytes; it
// must outlive the result. `nccl` comes from LoadNccl(). FAILED_PRECONDITION: no such device. DEADLINE_EXCEEDED: not
// all ranks came. INTERNAL: an error of CUDA or NCCL.
//
// Lists lie in the device's memory and have the same pieces on all ranks, because each piece is a call of NCCL.
// AllocateShared gives device memory.
absl::StatusOr<std::unique_ptr<Group>> MakeNcclGroup(Group& control, const NcclCalls& nccl,
                                                     const NcclGroupOptions& options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_
