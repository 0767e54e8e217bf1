#include "mpi_group/reduce/reduce_kernels.h"

namespace hooke {

// constexpr: nothing of this file may run before the CPU was asked.
constexpr ReduceVariant kReduceAvx2 = VariantNamed("avx2");

}  // namespace hooke
