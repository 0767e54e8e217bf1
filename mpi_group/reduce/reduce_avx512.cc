#include "mpi_group/reduce/reduce_kernels.h"

namespace hooke {

// constexpr, because no code of this file may run before the CPU is known to support it.
constexpr ReduceVariant kReduceAvx512 = VariantNamed("avx512");

}  // namespace hooke
