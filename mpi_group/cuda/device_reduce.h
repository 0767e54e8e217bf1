#ifndef HOOKE_MPI_GROUP_CUDA_DEVICE_REDUCE_H_
#define HOOKE_MPI_GROUP_CUDA_DEVICE_REDUCE_H_

// Reduce, Widen and Narrow (mpi_group/reduce/reduce.h) on a GPU. Results are bitwise those of the host, except for the
// payloads of NaNs. Plain C++, so that callers need no nvcc.

#include <cstdint>

#include "mpi_group/data_type.h"

struct CUstream_st;

namespace hooke {

inline constexpr int kDevicePointersMax = 16;

struct DeviceReduction {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int mean_of = 0;  // Has the meaning of Reduction::mean_of.
  // There are 1 to kDevicePointersMax sources and 1 to kDevicePointersMax destinations. They lie in memory that the
  // stream's device can reach, and are aligned for the type. A destination is one of the sources or overlaps none of
  // them.
  int sources = 0;
  const void* source[kDevicePointersMax] = {};
  int destinations = 0;
  void* destination[kDevicePointersMax] = {};
  uint64_t values = 0;
};

// Gives the reduction to the stream and returns at once. Returns a cudaError_t: 0 for success, cudaErrorInvalidValue if
// the number of sources or destinations is out of range.
int LaunchReduce(const DeviceReduction& reduction, CUstream_st* stream);

// LaunchWiden() converts 16-bit values to float32. LaunchNarrow() converts them back, rounded to nearest, ties to even.
// For other types they return cudaErrorInvalidValue.
int LaunchWiden(DataType type, const void* from, float* to, uint64_t values, CUstream_st* stream);
int LaunchNarrow(DataType type, const float* from, void* to, uint64_t values, CUstream_st* stream);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_DEVICE_REDUCE_H_
