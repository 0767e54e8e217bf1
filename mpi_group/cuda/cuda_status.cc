#include "mpi_group/cuda/cuda_status.h"

#include <sched.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {

absl::Status CudaStatus(cudaError_t code, absl::string_view what) {
  if (code == cudaSuccess) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": ", cudaGetErrorString(code), " (", cudaGetErrorName(code), ")");
  return code == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

absl::Status AwaitStream(cudaStream_t stream, absl::Time deadline, const std::function<absl::Status()>& healthy) {
  const absl::Time start = SteadyNow();
  while (true) {
    const cudaError_t code = cudaStreamQuery(stream);
    if (code != cudaErrorNotReady) return CudaStatus(code, "work on the device");
    absl::Status status = healthy();
    if (!status.ok()) return status;
    const absl::Time now = SteadyNow();
    if (now >= deadline) return absl::DeadlineExceededError("waited for the device until the deadline");
    // Longer waits must not occupy a core.
    if (now - start > absl::Milliseconds(5)) {
      absl::SleepFor(absl::Microseconds(50));
    } else {
      sched_yield();
    }
  }
}

}  // namespace hooke
