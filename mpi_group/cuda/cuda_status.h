#ifndef HOOKE_MPI_GROUP_CUDA_CUDA_STATUS_H_
#define HOOKE_MPI_GROUP_CUDA_CUDA_STATUS_H_

// Turns CUDA's error codes into absl::Status, and waits for streams and events with a deadline.

#include <cuda_runtime_api.h>

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

// OK for cudaSuccess; RESOURCE_EXHAUSTED if the device has no memory left; else INTERNAL. The message is `what` and
// CUDA's own.
absl::Status CudaStatus(cudaError_t code, absl::string_view what);

// Waits until all work given to the stream so far is done. It polls (polling.h), and calls `healthy` meanwhile, whose
// first error ends the wait. Errors: DEADLINE_EXCEEDED, the error of `healthy`, or an error of the stream's work.
absl::Status AwaitStream(cudaStream_t stream, absl::Time deadline, const std::function<absl::Status()>& healthy);

// Waits until the work before the last recording of `event` is done. Returns at once if it was never recorded. Errors:
// DEADLINE_EXCEEDED, or an error of the stream's work.
absl::Status AwaitEvent(cudaEvent_t event, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_CUDA_STATUS_H_
