#include "mpi_group/collectives/on_all_ranks.h"

#include "mpi_group/call.h"
#include "mpi_group/collectives/broadcast.h"
#include "mpi_group/collectives/rooted_reduce.h"
#include "mpi_group/collectives/texts.h"

namespace hooke {

absl::StatusOr<bool> OnAllRanks(Transport& transport, bool flag, absl::Time deadline) {
  float value = flag ? 1 : 0;
  const TensorList values(absl::MakeSpan(&value, 1));
  Scratch scratch;
  const Call call = {deadline, scratch};
  absl::Status status = TreeReduce(transport, values, ReduceOp::kMin, BinomialShape(), /*root=*/0, call);
  if (status.ok()) status = BinomialBroadcast(transport, values, /*root=*/0, call);
  if (!status.ok()) return status;
  return value == 1;
}

absl::StatusOr<std::string> FirstObjection(Transport& transport, const std::string& objection, absl::Time deadline) {
  const absl::StatusOr<bool> none = OnAllRanks(transport, objection.empty(), deadline);
  if (!none.ok()) return none.status();
  if (*none) return std::string();
  const absl::StatusOr<std::string> all =
      JoinTexts(transport, objection.empty() ? std::string() : objection + '\n', deadline);
  if (!all.ok()) return all.status();
  return ShareText(transport, all->substr(0, all->find('\n')), deadline);
}

}  // namespace hooke
