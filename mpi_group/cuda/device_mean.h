#ifndef HOOKE_MPI_GROUP_CUDA_DEVICE_MEAN_H_
#define HOOKE_MPI_GROUP_CUDA_DEVICE_MEAN_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// What is left of a mean once the values are summed: gives their division by n to the stream of their device, which is
// the current one, and returns at once. Used by nccl_group.cc.
absl::Status StartMean(const TensorList& sums, int n, cudaStream_t stream);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_DEVICE_MEAN_H_
