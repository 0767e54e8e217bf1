#ifndef HOOKE_MPI_GROUP_REDUCE_REDUCE_VARIANT_H_
#define HOOKE_MPI_GROUP_REDUCE_REDUCE_VARIANT_H_

// The functions of reduce.h as compiled for one kind of CPU. reduce.cc calls the best one that the CPU supports
// (reduce_dispatch.h); all of them give the same bits, but for which NaN a NaN is.
//
// This file and reduce_kernels.h are compiled with instructions that this CPU may lack. They include nothing with
// inline functions: the linker keeps one copy of such a function for the whole program, and might keep theirs.

#include <cstdint>

namespace hooke {

struct ReduceVariant {
  // As Reduce() does it, with at least one source and one destination.
  using ReduceKernel = void (*)(const char* const* sources, uint64_t source_count, char* const* destinations,
                                uint64_t destination_count, uint64_t values, int mean_of);
  using WidenKernel = void (*)(const char* from, char* to, uint64_t values);

  static constexpr int kTypes = 6;
  static constexpr int kOps = 4;

  const char* name;
  ReduceKernel reduce[kTypes][kOps];  // In the order of DataType and ReduceOp. For kMean `mean_of` is at least 1.
  WidenKernel widen_bfloat16;
  WidenKernel widen_float16;
  WidenKernel narrow_bfloat16;
  WidenKernel narrow_float16;
  ReduceKernel wide_sum_bfloat16;  // As ReduceWide() does it: destinations are of float32, `mean_of` is not looked at.
  ReduceKernel wide_sum_float16;
};

extern const ReduceVariant kReduceBaseline;
extern const ReduceVariant kReduceAvx2;    // Only on x86-64, as the next one.
extern const ReduceVariant kReduceAvx512;  // AVX-512 F, BW, VL and DQ.

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_REDUCE_VARIANT_H_
