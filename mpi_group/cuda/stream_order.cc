#include "mpi_group/cuda/stream_order.h"

#include <utility>

#include "absl/status/statusor.h"
#include "mpi_group/cuda/cuda_status.h"

namespace hooke {
namespace {

absl::Status LetWait(cudaStream_t waiting, cudaStream_t first, const Event& event) {
  absl::Status status = CudaStatus(cudaEventRecord(event.get(), first), "cudaEventRecord");
  if (!status.ok()) return status;
  return CudaStatus(cudaStreamWaitEvent(waiting, event.get(), 0), "cudaStreamWaitEvent");
}

}  // namespace

absl::Status StreamOrder::Open() {
  for (Event* event : {&before_, &after_}) {
    absl::StatusOr<Event> made = MakeEvent();
    if (!made.ok()) return made.status();
    *event = *std::move(made);
  }
  return absl::OkStatus();
}

absl::Status StreamOrder::Begin(cudaStream_t own) { return LetWait(own, caller_, before_); }

absl::Status StreamOrder::End(cudaStream_t own) { return LetWait(caller_, own, after_); }

}  // namespace hooke
