#ifndef HOOKE_MPI_GROUP_CUDA_DEVICE_REDUCE_H_
#define HOOKE_MPI_GROUP_CUDA_DEVICE_REDUCE_H_

// Reduce, Widen and Narrow (mpi_group/reduce/reduce.h) on a device: the same arithmetic, the same results but for the
// payloads of NaNs. Plain C++, so that callers need no nvcc.

#include <cstdint>

#include "mpi_group/data_type.h"

struct CUstream_st;

namespace hooke {

inline constexpr int kDevicePointersMax = 16;

struct DeviceReduction {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int mean_of = 0;  // As in Reduction.
  // Memory that the stream's device reaches, aligned as the type asks for; [1, kDevicePointersMax] of each. A
  // destination is one of the sources or overlaps none of them.
  int sources = 0;
  const void* source[kDevicePointersMax] = {};
  int destinations = 0;
  void* destination[kDevicePointersMax] = {};
  uint64_t values = 0;
};

// Gives the work to the stream and returns at once. A cudaError_t: 0 for success, cudaErrorInvalidValue for numbers of
// pointers out of range.
int LaunchReduce(const DeviceReduction& reduction, CUstream_st* stream);

// Values of 16 bits as float32, and back, rounded to the nearest, ties to even: as Widen and Narrow of reduce/reduce.h.
// cudaErrorInvalidValue for other types.
int LaunchWiden(DataType type, const void* from, float* to, uint64_t values, CUstream_st* stream);
int LaunchNarrow(DataType type, const float* from, void* to, uint64_t values, CUstream_st* stream);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_DEVICE_REDUCE_H_
