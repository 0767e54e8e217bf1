#include "mpi_group/reduce/reduce_kernels.h"

namespace hooke {

constexpr ReduceVariant kReduceBaseline = VariantNamed("baseline");

}  // namespace hooke
