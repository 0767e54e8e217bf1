#include "mpi_group/collectives/on_all_ranks.h"

#include "mpi_group/call.h"
#include "mpi_group/collectives/reference.h"

namespace hooke {

absl::StatusOr<bool> OnAllRanks(Transport& transport, bool flag, absl::Time deadline) {
  float value = flag ? 1 : 0;
  Scratch scratch;
  absl::Status status =
      ReferenceAllReduce(transport, TensorList(absl::MakeSpan(&value, 1)), ReduceOp::kMin, {deadline, scratch});
  if (!status.ok()) return status;
  return value == 1;
}

}  // namespace hooke
