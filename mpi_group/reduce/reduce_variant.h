#ifndef HOOKE_MPI_GROUP_REDUCE_REDUCE_VARIANT_H_
#define HOOKE_MPI_GROUP_REDUCE_REDUCE_VARIANT_H_

// The functions of reduce.h, compiled for one kind of CPU. reduce.cc calls the best variant that the CPU supports
// (reduce_dispatch.h). All variants give bitwise the same results, except for the bits of a NaN.
//
// This file and reduce_kernels.h are compiled with instructions that the CPU at hand may lack. So they include nothing
// with inline functions. The linker keeps one copy of such a function for the whole program, and that copy might use
// these instructions.

#include <cstdint>

namespace hooke {

struct ReduceVariant {
  // A kernel behind Reduce(). It gets at least one source and one destination.
  using ReduceKernel = void (*)(const char* const* sources, uint64_t source_count, char* const* destinations,
                                uint64_t destination_count, uint64_t values, int mean_of);
  using WidenKernel = void (*)(const char* from, char* to, uint64_t values);

  static constexpr int kTypes = 6;
  static constexpr int kOps = 4;

  const char* name;
  ReduceKernel reduce[kTypes][kOps];  // Indexed by DataType and ReduceOp. kMean needs a `mean_of` of at least 1.
  WidenKernel widen_bfloat16;
  WidenKernel widen_float16;
  WidenKernel narrow_bfloat16;
  WidenKernel narrow_float16;
  ReduceKernel wide_sum_bfloat16;  // A kernel behind ReduceWide(): destinations are float32, `mean_of` is ignored.
  ReduceKernel wide_sum_float16;
};

extern const ReduceVariant kReduceBaseline;
extern const ReduceVariant kReduceAvx2;    // kReduceAvx2 and kReduceAvx512 exist only on x86-64.
extern const ReduceVariant kReduceAvx512;  // Needs AVX-512 F, BW, VL and DQ.

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_REDUCE_VARIANT_H_
