#include "mpi_group/reference.h"

#include "mpi_group/broadcast.h"
#include "mpi_group/reduce.h"

namespace hooke {

absl::Status ReferenceAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call) {
  std::vector<float> sum(values.size());
  Gather(values, absl::MakeSpan(sum));
  if (transport.rank() != 0) {
    absl::Status status = transport.Send({0, BytesOf(sum)}, call.deadline);
    if (!status.ok()) return status;
  } else {
    std::vector<float> other(values.size());
    for (int rank = 1; rank < transport.size(); ++rank) {
      absl::Status status = transport.Receive({rank, MutableBytesOf(absl::MakeSpan(other))}, call.deadline);
      if (!status.ok()) return status;
      ReduceInto(op, other, absl::MakeSpan(sum));
    }
    FinishReduction(op, transport.size(), absl::MakeSpan(sum));
    Scatter(sum, values);
  }
  return BinomialBroadcast(transport, values, 0, call);
}

}  // namespace hooke
