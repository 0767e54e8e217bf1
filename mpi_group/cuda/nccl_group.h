#ifndef HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_
#define HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_

// A Group of ranks with GPUs whose collectives are NCCL's: values lie in device memory, kernels on the devices move and
// reduce them. One or several devices per rank.
//
// Differs from the other groups: sums of 16-bit types are rounded wherever NCCL rounds them, not once, and a mean is
// infinite where its sum is out of the type's range; min and max of NaN are NCCL's. One rank's failure, but for one of
// AllocateShared, is not told to the others: they wait for it until their deadlines. Every call returns after the
// device has done its work.

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/group.h"

namespace hooke {

struct NcclGroupOptions {
  // Of this rank; all ranks give as many, [1, 16]. No two ranks of a node share one.
  std::vector<int> devices = {0};
  // Of making the group and of each collective.
  absl::Duration deadline = absl::Seconds(30);
};

class NcclGroup : public Group {
 public:
  // Several vectors of this rank as one tensor: replicas[i] lies on devices[i]; all have one shape. All vectors of all
  // ranks are reduced, and all hold the result; kMean divides by their number.
  virtual absl::Status AllReduceReplicas(absl::Span<const TensorList> replicas, ReduceOp op) = 0;
};

// Lists have the same pieces on all ranks: each piece is a call of NCCL's. Collective; `control` brings the ranks
// together, carries a few bytes, and outlives the group. The Group operations but for Barrier work on lists in memory
// of devices[0], and need it to be the only one (FAILED_PRECONDITION); AllocateShared gives device memory.
// FAILED_PRECONDITION: no such device. DEADLINE_EXCEEDED: not all ranks came. INTERNAL: what CUDA or NCCL says.
absl::StatusOr<std::unique_ptr<NcclGroup>> MakeNcclGroup(Group& control, const NcclGroupOptions& options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_NCCL_GROUP_H_
