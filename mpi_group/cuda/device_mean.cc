#include "mpi_group/cuda/device_mean.h"

#include "mpi_group/cuda/cuda_status.h"
#include "mpi_group/cuda/device_reduce.h"

namespace hooke {

absl::Status StartMean(const TensorList& sums, int n, cudaStream_t stream) {
  for (absl::Span<char> piece : sums.pieces()) {
    DeviceReduction what;
    what.type = sums.type();
    what.op = ReduceOp::kMean;
    what.mean_of = n;
    what.sources = what.destinations = 1;
    what.source[0] = what.destination[0] = piece.data();
    what.values = piece.size() / SizeOf(sums.type());
    absl::Status status = CudaStatus(static_cast<cudaError_t>(LaunchReduce(what, stream)), "mean");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace hooke
