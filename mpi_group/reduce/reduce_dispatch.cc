#include "mpi_group/reduce/reduce_dispatch.h"

#include "absl/container/inlined_vector.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hooke {
namespace {

using Variants = absl::InlinedVector<const ReduceVariant*, 3>;

Variants FindSupported() {
  Variants supported;
#if defined(__x86_64__)
  // clang 14's __builtin_cpu_supports does not know F16C, so cpuid says it. The checks below make sure that the
  // operating system saves its registers.
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  __builtin_cpu_init();
  const bool avx2 = f16c && __builtin_cpu_supports("avx2");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    supported.push_back(&kReduceAvx512);
  }
  if (avx2) supported.push_back(&kReduceAvx2);
#endif
  supported.push_back(&kReduceBaseline);
  return supported;
}

}  // namespace

absl::Span<const ReduceVariant* const> SupportedReduceVariants() {
  static const Variants* const supported = new Variants(FindSupported());
  return *supported;
}

}  // namespace hooke
