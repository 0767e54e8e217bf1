#include "mpi_group/cuda/device_accumulator.h"

#include <utility>

#include "absl/types/span.h"
#include "mpi_group/cuda/cuda_status.h"
#include "mpi_group/cuda/device_reduce.h"
#include "mpi_group/reduce/accumulator.h"

namespace hooke {

absl::StatusOr<TensorList> DeviceAccumulator::Start(const TensorList& values, ReduceOp op, int ranks,
                                                    cudaStream_t stream) {
  wide_ = nullptr;
  values_ = values;
  if (values.empty() || !NeedsWideSums(values.type(), op, ranks)) return values;
  const uint64_t bytes = values.size() * sizeof(float);
  if (memory_bytes_ < bytes) {
    // Free the old memory first: both may not fit.
    memory_.reset();
    memory_bytes_ = 0;
    absl::StatusOr<DeviceMemory> memory = AllocateDeviceMemory(bytes);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    memory_bytes_ = bytes;
  }
  wide_ = reinterpret_cast<float*>(memory_.get());
  float* to = wide_;
  for (absl::Span<char> piece : values.pieces()) {
    const uint64_t count = piece.size() / SizeOf(values.type());
    absl::Status status = CudaStatus(
        static_cast<cudaError_t>(LaunchWiden(values.type(), piece.data(), to, count, stream)), "widening of values");
    if (!status.ok()) return status;
    to += count;
  }
  return TensorList(DataType::kFloat32, absl::MakeSpan(memory_.get(), bytes));
}

absl::Status DeviceAccumulator::StartStoring(ValueRange range, cudaStream_t stream) {
  if (wide_ == nullptr) return absl::OkStatus();
  const TensorList to = values_.Slice(range);
  const float* from = wide_ + range.begin;
  for (absl::Span<char> piece : to.pieces()) {
    const uint64_t count = piece.size() / SizeOf(to.type());
    absl::Status status = CudaStatus(
        static_cast<cudaError_t>(LaunchNarrow(to.type(), from, piece.data(), count, stream)), "rounding of values");
    if (!status.ok()) return status;
    from += count;
  }
  return absl::OkStatus();
}

}  // namespace hooke
