#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

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

// A thread loads and stores 16 bytes at once, where all pointers allow it.
constexpr uint64_t kPackBytes = sizeof(uint4);

// How many values of T fit a pack.
template <typename T>
constexpr int kPackValues = static_cast<int>(kPackBytes / sizeof(T));

// Loads values `at`, `at` + 1, ... of a vector. Either it is one value, or they fill whole packs; the first then lies
// at a multiple of 16 bytes.
template <int kValues, typename T>
__device__ void LoadValues(const void* vector, uint64_t at, T (&values)[kValues]) {
  const T* const from = static_cast<const T*>(vector) + at;
  if constexpr (kValues == 1) {
    values[0] = *from;
  } else {
    static_assert(sizeof(values) % kPackBytes == 0, "values fill whole packs");
#pragma unroll
    for (int i = 0; i < kValues / kPackValues<T>; ++i) {
      const uint4 pack = reinterpret_cast<const uint4*>(from)[i];
      memcpy(&values[i * kPackValues<T>], &pack, sizeof(pack));
    }
  }
}

// Stores what LoadValues() would load.
template <int kValues, typename T>
__device__ void StoreValues(const T (&values)[kValues], void* vector, uint64_t at) {
  T* const to = static_cast<T*>(vector) + at;
  if constexpr (kValues == 1) {
    *to = values[0];
  } else {
    static_assert(sizeof(values) % kPackBytes == 0, "values fill whole packs");
#pragma unroll
    for (int i = 0; i < kValues / kPackValues<T>; ++i) {
      uint4 pack;
      memcpy(&pack, &values[i * kPackValues<T>], sizeof(pack));
      reinterpret_cast<uint4*>(to)[i] = pack;
    }
  }
}

// Calls at(place, width) for all places: first for whole widths of kWide places, `wide` of them, then for the remaining
// places one by one. `width` is a std::integral_constant. The threads of the grid share the calls.
template <int kWide, typename At>
__device__ void ForAllPlaces(uint64_t values, uint64_t wide, const At& at) {
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = first; i < wide; i += stride) at(i * kWide, std::integral_constant<int, kWide>());
  for (uint64_t i = wide * kWide + first; i < values; i += stride) at(i, std::integral_constant<int, 1>());
}

// Reduces kValues places from `at` on. All loads come before the stores, because a destination may be a source.
template <typename Type, int kValues>
__device__ void ReduceAt(const DeviceReduction& what, uint64_t at) {
  typename Type::Stored stored[kValues];
  typename Type::Value result[kValues];
  LoadValues<kValues>(what.source[0], at, stored);
#pragma unroll
  for (int i = 0; i < kValues; ++i) result[i] = Type::Load(stored[i]);
  for (int k = 1; k < what.sources; ++k) {
    LoadValues<kValues>(what.source[k], at, stored);
#pragma unroll
    for (int i = 0; i < kValues; ++i) result[i] = Combine(what.op, result[i], Type::Load(stored[i]));
  }
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    if (what.op == ReduceOp::kMean && what.mean_of > 0) result[i] = Mean(result[i], what.mean_of);
    stored[i] = Type::Store(result[i]);
  }
  for (int k = 0; k < what.destinations; ++k) StoreValues<kValues>(stored, what.destination[k], at);
}

// A pack of 16 bytes of stored values is one width. In WidenKernel and NarrowKernel it is 32 bytes of float32.
template <typename Type>
__global__ void ReduceKernel(DeviceReduction what, uint64_t wide) {
  ForAllPlaces<kPackValues<typename Type::Stored>>(
      what.values, wide, [&](uint64_t at, auto width) { ReduceAt<Type, decltype(width)::value>(what, at); });
}

template <typename Type>
__global__ void WidenKernel(const void* from, float* to, uint64_t values, uint64_t wide) {
  ForAllPlaces<kPackValues<typename Type::Stored>>(values, wide, [&](uint64_t at, auto width) {
    constexpr int kValues = decltype(width)::value;
    typename Type::Stored stored[kValues];
    float single[kValues];
    LoadValues<kValues>(from, at, stored);
#pragma unroll
    for (int i = 0; i < kValues; ++i) single[i] = Type::Load(stored[i]);
    StoreValues<kValues>(single, to, at);
  });
}

template <typename Type>
__global__ void NarrowKernel(const float* from, void* to, uint64_t values, uint64_t wide) {
  ForAllPlaces<kPackValues<typename Type::Stored>>(values, wide, [&](uint64_t at, auto width) {
    constexpr int kValues = decltype(width)::value;
    float single[kValues];
    typename Type::Stored stored[kValues];
    LoadValues<kValues>(from, at, single);
#pragma unroll
    for (int i = 0; i < kValues; ++i) stored[i] = Type::Store(single[i]);
    StoreValues<kValues>(stored, to, at);
  });
}

// Whether a vector begins at a multiple of 16 bytes. Vectors that do not are loaded value by value.
bool IsAligned(const void* vector) { return reinterpret_cast<uintptr_t>(vector) % kPackBytes == 0; }

bool IsAligned(const DeviceReduction& what) {
  const auto aligned = [](const void* vector) { return IsAligned(vector); };
  return std::all_of(what.source, what.source + what.sources, aligned) &&
         std::all_of(what.destination, what.destination + what.destinations, aligned);
}

// The places of a kernel: how many whole widths, and blocks for them and the values that remain.
struct Places {
  uint64_t wide = 0;
  unsigned blocks = 0;
};

template <typename Stored>
Places PlacesOf(uint64_t values, bool aligned) {
  const uint64_t wide = aligned ? values / kPackValues<Stored> : 0;
  const uint64_t most = std::max(wide, values - wide * kPackValues<Stored>);
  return {wide, static_cast<unsigned>(std::min((most + kThreads - 1) / kThreads, kBlocksMax))};
}

// Clears errors of earlier calls, which have been reported. A launch does not return its own error; cudaGetLastError
// gives the thread's last one.
void ForgetErrors() { (void)cudaGetLastError(); }

template <typename Type>
cudaError_t Launch(const DeviceReduction& what, cudaStream_t stream) {
  ForgetErrors();
  const Places places = PlacesOf<typename Type::Stored>(what.values, IsAligned(what));
  ReduceKernel<Type><<<places.blocks, kThreads, 0, stream>>>(what, places.wide);
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
    using Kind = decltype(kind);
    const Places places = PlacesOf<typename Kind::Stored>(values, IsAligned(from) && IsAligned(to));
    WidenKernel<Kind><<<places.blocks, kThreads, 0, stream>>>(from, to, values, places.wide);
  });
}

int LaunchNarrow(DataType type, const float* from, void* to, uint64_t values, CUstream_st* stream) {
  return LaunchOfSixteenBits(type, values, [&](auto kind) {
    using Kind = decltype(kind);
    const Places places = PlacesOf<typename Kind::Stored>(values, IsAligned(from) && IsAligned(to));
    NarrowKernel<Kind><<<places.blocks, kThreads, 0, stream>>>(from, to, values, places.wide);
  });
}

}  // namespace hooke
