#ifndef HOOKE_MPI_GROUP_CUDA_DEVICE_MEAN_H_
#define HOOKE_MPI_GROUP_CUDA_DEVICE_MEAN_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// The last step of a mean: makes the stream divide the sums by n, and returns at once. The stream's device must be the
// current one.
absl::Status StartMean(const TensorList& sums, int n, cudaStream_t stream);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_DEVICE_MEAN_H_
