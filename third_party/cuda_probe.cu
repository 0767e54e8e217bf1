#include <cuda_runtime.h>

#include "third_party/cuda_probe.h"

namespace hooke {
namespace {

__global__ void Sum(const float* a, const float* b, float* sum, size_t values) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < values) sum[i] = a[i] + b[i];
}

}  // namespace

int CudaDevices(std::string* error) {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess) return devices;
  *error = cudaGetErrorString(status);
  return 0;
}

std::vector<float> SumOnDevice(const std::vector<float>& a, const std::vector<float>& b, std::string* error) {
  constexpr int kThreads = 256;
  const size_t bytes = a.size() * sizeof(float);
  float* device = nullptr;  // Holds a, b and their sum, one after another.
  std::vector<float> sum(a.size());
  cudaError_t status = cudaMalloc(&device, 3 * bytes);
  if (status == cudaSuccess) status = cudaMemcpy(device, a.data(), bytes, cudaMemcpyHostToDevice);
  if (status == cudaSuccess) status = cudaMemcpy(device + a.size(), b.data(), bytes, cudaMemcpyHostToDevice);
  if (status == cudaSuccess) {
    const int blocks = static_cast<int>((a.size() + kThreads - 1) / kThreads);
    Sum<<<blocks, kThreads>>>(device, device + a.size(), device + 2 * a.size(), a.size());
    status = cudaMemcpy(sum.data(), device + 2 * a.size(), bytes, cudaMemcpyDeviceToHost);
  }
  cudaFree(device);
  if (status == cudaSuccess) return sum;
  *error = cudaGetErrorString(status);
  return {};
}

}  // namespace hooke
