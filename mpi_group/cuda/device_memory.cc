#include "mpi_group/cuda/device_memory.h"

#include "absl/strings/str_cat.h"
#include "mpi_group/cuda/cuda_status.h"

namespace hooke {
namespace {

constexpr size_t kKnownMax = 4096;

absl::string_view NameOf(cudaMemoryType type) {
  switch (type) {
    case cudaMemoryTypeHost:
      return "page-locked host memory";
    case cudaMemoryTypeDevice:
      return "device memory";
    case cudaMemoryTypeManaged:
      return "managed memory";
    case cudaMemoryTypeUnregistered:
      break;
  }
  return "ordinary host memory";
}

}  // namespace

absl::StatusOr<DeviceMemory> AllocateDeviceMemory(uint64_t bytes) {
  void* memory = nullptr;
  absl::Status status = CudaStatus(cudaMalloc(&memory, bytes), absl::StrCat("cudaMalloc of ", bytes, " bytes"));
  if (!status.ok()) return status;
  DeviceMemory owned(static_cast<char*>(memory));
  status = ZeroDeviceMemory(owned.get(), bytes);
  if (!status.ok()) return status;
  return owned;
}

absl::Status ZeroDeviceMemory(char* memory, uint64_t bytes) {
  absl::Status status = CudaStatus(cudaMemset(memory, 0, bytes), "cudaMemset");
  // cudaMemset may return before it is done, and the group's streams do not wait for the default stream.
  status.Update(CudaStatus(cudaStreamSynchronize(nullptr), "cudaMemset"));
  return status;
}

absl::StatusOr<PinnedMemory> AllocatePinnedMemory(uint64_t bytes) {
  void* memory = nullptr;
  absl::Status status = CudaStatus(cudaMallocHost(&memory, bytes), absl::StrCat("cudaMallocHost of ", bytes, " bytes"));
  if (!status.ok()) return status;
  return PinnedMemory(static_cast<char*>(memory));
}

absl::StatusOr<Stream> MakeStream() {
  int lowest = 0;
  int highest = 0;
  absl::Status status =
      CudaStatus(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  if (!status.ok()) return status;
  cudaStream_t stream = nullptr;
  status = CudaStatus(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest), "cudaStreamCreate");
  if (!status.ok()) return status;
  return Stream(stream);
}

absl::StatusOr<Event> MakeEvent() {
  cudaEvent_t event = nullptr;
  absl::Status status = CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  if (!status.ok()) return status;
  return Event(event);
}

absl::Status PointerKinds::CheckOnDevice(const TensorList& values, int device) {
  for (absl::Span<char> piece : values.pieces()) {
    const auto known = known_.find(piece.data());
    if (known != known_.end() && known->second >= piece.size()) continue;
    // Checks both ends: a piece may begin on the device and end elsewhere.
    for (const char* end : {piece.data(), piece.data() + piece.size() - 1}) {
      cudaPointerAttributes attributes = {};
      absl::Status status = CudaStatus(cudaPointerGetAttributes(&attributes, end), "cudaPointerGetAttributes");
      if (!status.ok()) return status;
      if (attributes.type == cudaMemoryTypeManaged) continue;
      if (attributes.type == cudaMemoryTypeDevice && attributes.device == device) continue;
      return absl::InvalidArgumentError(absl::StrCat("a vector of ", piece.size(), " bytes lies in ",
                                                     NameOf(attributes.type), " (device ", attributes.device,
                                                     "); this group works on memory of device ", device));
    }
    if (known_.size() >= kKnownMax) known_.clear();
    known_[piece.data()] = piece.size();
  }
  return absl::OkStatus();
}

}  // namespace hooke
