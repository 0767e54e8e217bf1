#ifndef HOOKE_MPI_GROUP_CUDA_FAKE_NCCL_H_
#define HOOKE_MPI_GROUP_CUDA_FAKE_NCCL_H_

// An NCCL whose ranks are threads of one process, for tests without a device. It works on the streams and the memory of
// fake_cuda.h, whose FakeState says what a test can see and set.
//
// A collective waits in its stream for those of the other ranks, until its communicator is aborted. Then one rank's
// stream does it for all. Sums of 16-bit values that leave the type's range are infinite.

#include "mpi_group/cuda/nccl_calls.h"

namespace hooke {

NcclCalls FakeNccl();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_FAKE_NCCL_H_
