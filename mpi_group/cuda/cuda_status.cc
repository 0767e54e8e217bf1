#include "mpi_group/cuda/cuda_status.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "mpi_group/cuda/polling.h"

namespace hooke {

absl::Status CudaStatus(cudaError_t code, absl::string_view what) {
  if (code == cudaSuccess) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": ", cudaGetErrorString(code), " (", cudaGetErrorName(code), ")");
  return code == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

namespace {

// Turns what CUDA says of a stream or an event into whether it is done.
absl::StatusOr<bool> IsDone(cudaError_t code) {
  if (code == cudaErrorNotReady) return false;
  absl::Status status = CudaStatus(code, "work on the device");
  if (!status.ok()) return status;
  return true;
}

}  // namespace

absl::Status AwaitStream(cudaStream_t stream, absl::Time deadline, const std::function<absl::Status()>& healthy) {
  return PollUntil(
      deadline, "the device", [&] { return IsDone(cudaStreamQuery(stream)); }, healthy);
}

absl::Status AwaitEvent(cudaEvent_t event, absl::Time deadline) {
  return PollUntil(
      deadline, "the device", [&] { return IsDone(cudaEventQuery(event)); }, [] { return absl::OkStatus(); });
}

}  // namespace hooke
