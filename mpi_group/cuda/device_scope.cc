#include "mpi_group/cuda/device_scope.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "mpi_group/cuda/cuda_status.h"

namespace hooke {
namespace {

// Whether the process has a context on the device. Only the driver can say so without making one. The runtime has
// loaded the driver, and finds its functions.
bool HasContext(int device) {
  constexpr unsigned kSinceCuda7 = 7000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &function, kSinceCuda7, cudaEnableDefault, &found);
  if (code != cudaSuccess || found != cudaDriverEntryPointSuccess || function == nullptr) return false;
  unsigned flags = 0;
  int active = 0;
  const CUresult result = reinterpret_cast<PFN_cuDevicePrimaryCtxGetState_v7000>(function)(device, &flags, &active);
  return result == CUDA_SUCCESS && active != 0;
}

}  // namespace

absl::Status CheckDevice(int device) {
  int devices = 0;
  absl::Status status = CudaStatus(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (!status.ok()) return absl::FailedPreconditionError(status.message());
  if (device >= 0 && device < devices) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("device ", device, ": this node has ", devices));
}

DeviceScope::DeviceScope(int device) {
  int current = 0;
  status_ = CudaStatus(cudaGetDevice(&current), "cudaGetDevice");
  if (!status_.ok()) return;
  // A thread without a context gets one here even if the device is its current one.
  status_ = CudaStatus(cudaSetDevice(device), absl::StrCat("cudaSetDevice ", device));
  if (status_.ok() && current != device) before_ = current;
}

DeviceScope::~DeviceScope() {
  if (before_ >= 0 && HasContext(before_)) cudaSetDevice(before_);
}

}  // namespace hooke
