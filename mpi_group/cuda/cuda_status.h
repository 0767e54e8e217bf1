#ifndef HOOKE_MPI_GROUP_CUDA_CUDA_STATUS_H_
#define HOOKE_MPI_GROUP_CUDA_CUDA_STATUS_H_

// CUDA's error codes as absl::Status, and its waits with a deadline. Used by the other files of mpi_group/cuda.

#include <cuda_runtime_api.h>

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

// OK for cudaSuccess; RESOURCE_EXHAUSTED if the device has no memory left; else INTERNAL. With CUDA's message after
// `what`.
absl::Status CudaStatus(cudaError_t code, absl::string_view what);

// Until all work given to the stream so far is done. Polls, and calls `healthy` meanwhile: its first error ends the
// wait. DEADLINE_EXCEEDED; what the stream's work failed with.
absl::Status AwaitStream(cudaStream_t stream, absl::Time deadline, const std::function<absl::Status()>& healthy);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_CUDA_STATUS_H_
