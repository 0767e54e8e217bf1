#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "mpi_group/cuda/device_reduce.h"

namespace hooke {
namespace {

constexpr int kThreads = 256;
// Enough blocks to fill any device; each thread takes several places of a longer vector.
constexpr uint64_t kBlocksMax = 4096;

// A type's values in memory (Stored) and in arithmetic (Value).
template <typename T>
struct Plain {
  using Stored = T;
  using Value = T;
  static __device__ Value Load(Stored stored) { return stored; }
  static __device__ Stored Store(Value value) { return value; }
};

struct Bfloat {
  using Stored = __nv_bfloat16;
  using Value = float;
  static __device__ Value Load(Stored stored) { return __bfloat162float(stored); }
  static __device__ Stored Store(Value value) { return __float2bfloat16_rn(value); }
};

struct Half {
  using Stored = __half;
  using Value = float;
  static __device__ Value Load(Stored stored) { return __half2float(stored); }
  static __device__ Stored Store(Value value) { return __float2half_rn(value); }
};

// Adds integers as unsigned ones, so that sums wrap around.
__device__ float Add(float a, float b) { return a + b; }
__device__ double Add(double a, double b) { return a + b; }
__device__ int32_t Add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
__device__ int64_t Add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Floats are multiplied with the reciprocal, as on the host.
__device__ float Mean(float sum, int n) { return sum * (1.0f / static_cast<float>(n)); }
__device__ double Mean(double sum, int n) { return sum * (1.0 / static_cast<double>(n)); }
__device__ int32_t Mean(int32_t sum, int n) { return sum / n; }
__device__ int64_t Mean(int64_t sum, int n) { return sum / n; }

template <typename V>
__device__ V Combine(ReduceOp op, V a, V b) {
  if (op == ReduceOp::kMin) return a < b || a != a ? a : b;
  if (op == ReduceOp::kMax) return a > b || a != a ? a : b;
  return Add(a, b);
}

template <typename Type>
__global__ void ReduceKernel(DeviceReduction what) {
  using Stored = typename Type::Stored;
  using Value = typename Type::Value;
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < what.values; i += stride) {
    Value result = Type::Load(static_cast<const Stored*>(what.source[0])[i]);
    for (int k = 1; k < what.sources; ++k) {
      result = Combine(what.op, result, Type::Load(static_cast<const Stored*>(what.source[k])[i]));
    }
    if (what.op == ReduceOp::kMean && what.mean_of > 0) result = Mean(result, what.mean_of);
    const Stored stored = Type::Store(result);
    for (int k = 0; k < what.destinations; ++k) static_cast<Stored*>(what.destination[k])[i] = stored;
  }
}

template <typename Type>
__global__ void WidenKernel(const void* from, float* to, uint64_t values) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < values; i += stride) {
    to[i] = Type::Load(static_cast<const typename Type::Stored*>(from)[i]);
  }
}

template <typename Type>
__global__ void NarrowKernel(const float* from, void* to, uint64_t values) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < values; i += stride) {
    static_cast<typename Type::Stored*>(to)[i] = Type::Store(from[i]);
  }
}

unsigned BlocksFor(uint64_t values) {
  return static_cast<unsigned>(std::min((values + kThreads - 1) / kThreads, kBlocksMax));
}

// Clears errors of earlier calls, which have been reported. A launch does not return its own error; cudaGetLastError
// gives the thread's last one.
void ForgetErrors() { (void)cudaGetLastError(); }

template <typename Type>
cudaError_t Launch(const DeviceReduction& what, cudaStream_t stream) {
  ForgetErrors();
  ReduceKernel<Type><<<BlocksFor(what.values), kThreads, 0, stream>>>(what);
  return cudaGetLastError();
}

// Calls launch(Bfloat()) or launch(Half()).
template <typename LaunchKernel>
int LaunchOfSixteenBits(DataType type, uint64_t values, const LaunchKernel& launch) {
  if (type != DataType::kBFloat16 && type != DataType::kFloat16) return cudaErrorInvalidValue;
  if (values == 0) return cudaSuccess;
  ForgetErrors();
  if (type == DataType::kBFloat16) {
    launch(Bfloat());
  } else {
    launch(Half());
  }
  return cudaGetLastError();
}

}  // namespace

int LaunchReduce(const DeviceReduction& what, CUstream_st* stream) {
  const auto in_range = [](int count) { return count >= 1 && count <= kDevicePointersMax; };
  if (!in_range(what.sources) || !in_range(what.destinations)) return cudaErrorInvalidValue;
  if (what.values == 0) return cudaSuccess;
  switch (what.type) {
    case DataType::kFloat32:
      return Launch<Plain<float>>(what, stream);
    case DataType::kFloat64:
      return Launch<Plain<double>>(what, stream);
    case DataType::kBFloat16:
      return Launch<Bfloat>(what, stream);
    case DataType::kFloat16:
      return Launch<Half>(what, stream);
    case DataType::kInt32:
      return Launch<Plain<int32_t>>(what, stream);
    case DataType::kInt64:
      return Launch<Plain<int64_t>>(what, stream);
  }
  return cudaErrorInvalidValue;
}

int LaunchWiden(DataType type, const void* from, float* to, uint64_t values, CUstream_st* stream) {
  return LaunchOfSixteenBits(type, values, [&](auto kind) {
    WidenKernel<decltype(kind)><<<BlocksFor(values), kThreads, 0, stream>>>(from, to, values);
  });
}

int LaunchNarrow(DataType type, const float* from, void* to, uint64_t values, CUstream_st* stream) {
  return LaunchOfSixteenBits(type, values, [&](auto kind) {
    NarrowKernel<decltype(kind)><<<BlocksFor(values), kThreads, 0, stream>>>(from, to, values);
  });
}

}  // namespace hooke
