#include "mpi_group/collectives/reference.h"

#include "absl/container/inlined_vector.h"
#include "mpi_group/collectives/broadcast.h"
#include "mpi_group/reduce/reduce_list.h"

namespace hooke {
namespace {

absl::Status ReduceAtRankZero(Transport& transport, const TensorList& values, ReduceOp op, const Call& call) {
  std::vector<char>& room = call.scratch.working;
  if (transport.rank() != 0) return transport.Send({0, ContiguousValues(values, room)}, call.deadline);
  const int others = transport.size() - 1;
  if (room.size() < others * values.bytes()) room.resize(others * values.bytes());
  absl::InlinedVector<absl::Span<const char>, 8> received;
  for (int rank = 1; rank <= others; ++rank) {
    const absl::Span<char> one = absl::MakeSpan(room).subspan((rank - 1) * values.bytes(), values.bytes());
    absl::Status status = transport.Receive({rank, one}, call.deadline);
    if (!status.ok()) return status;
    received.push_back(one);
  }
  ReduceIntoList({values.type(), op, transport.size()}, received, /*place=*/0, values);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReferenceAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call) {
  absl::Status status = ReduceAtRankZero(transport, values, op, call);
  return status.ok() ? BinomialBroadcast(transport, values, 0, call) : status;
}

}  // namespace hooke
