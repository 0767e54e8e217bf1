#ifndef HOOKE_MPI_GROUP_CUDA_STAGED_GROUP_H_
#define HOOKE_MPI_GROUP_CUDA_STAGED_GROUP_H_

// A Group on device memory whose bytes travel over a Transport, for MPI libraries that know nothing of devices and for
// nodes without NCCL between them. Values are reduced on the device: the host's memory holds only page-locked chunks on
// their way, several at once, so that copies in both directions, kernels and messages overlap. After S-Caffe's and
// MVAPICH2's staging: the host's cores neither reduce nor copy.

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

struct StagedGroupOptions {
  int device = 0;
  absl::Duration deadline = absl::Seconds(30);  // Of each collective.
  uint64_t chunk_bytes = 1 << 20;               // Of a message; all ranks pass the same, a multiple of 8.
};

// Lists of all calls lie in memory of the device (INVALID_ARGUMENT); AllocateShared gives such memory. Sums of 16-bit
// types are rounded once: of more than two ranks they travel as float32, and form in device memory of 4 bytes per value
// of the longest list so far, which the group keeps; getting more may wait for whatever the device is at. A call that
// fails on a rank, or differs on one, fails on all soon, as Transport::Settle says it. FAILED_PRECONDITION: no such
// device. RESOURCE_EXHAUSTED: no memory for the chunks.
absl::StatusOr<std::unique_ptr<Group>> MakeStagedGroup(std::unique_ptr<Transport> transport,
                                                       const StagedGroupOptions& options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_STAGED_GROUP_H_
