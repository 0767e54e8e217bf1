#ifndef HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_
#define HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_

// A Group of ranks with GPUs, by NCCL: values lie in device memory, and kernels on the devices move and reduce them. A
// rank has one or several devices.
//
// It differs from other groups in some points. Sums of 16-bit types are rounded wherever NCCL rounds them, not once. A
// mean is infinite if its sum is out of the type's range. Minima and maxima with NaN are as NCCL makes them. Except for
// AllocateShared, a rank that fails does not tell the others, which wait for it until their deadlines. Every call
// returns after the device has done its work.

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/group.h"

namespace hooke {

struct NcclGroupOptions {
  // The devices of this rank: 1 to 16, equally many on all ranks. No two ranks of a node share one.
  std::vector<int> devices = {0};
  // Deadline of making the group, and of each collective.
  absl::Duration deadline = absl::Seconds(30);
};

class NcclGroup : public Group {
 public:
  // All-reduces several vectors per rank: replicas[i] lies on devices[i], and all have one shape. All vectors of all
  // ranks are reduced, and all end with the result; kMean divides by their number.
  virtual absl::Status AllReduceReplicas(absl::Span<const TensorList> replicas, ReduceOp op) = 0;
};

// Makes a group of the ranks of `control`. Collective. `control` brings the ranks together and carries a few bytes; it
// must outlive the result. FAILED_PRECONDITION: no such device. DEADLINE_EXCEEDED: not all ranks came. INTERNAL: an
// error of CUDA or NCCL.
//
// Lists must have the same pieces on all ranks, because each piece is a call of NCCL. Except for Barrier the operations
// of Group work only if devices[0] is the only device (FAILED_PRECONDITION otherwise), on lists in its memory.
// AllocateShared gives device memory.
absl::StatusOr<std::unique_ptr<NcclGroup>> MakeNcclGroup(Group& control, const NcclGroupOptions& options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_
