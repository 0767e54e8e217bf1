#include "mpi_group/two_level.h"

#include <utility>

#include "mpi_group/message_collectives.h"
#include "mpi_group/ring_pass.h"

namespace hooke {
namespace {

// What the nodes' reductions still leave to do between them.
ReduceOp Undivided(ReduceOp op) { return op == ReduceOp::kMean ? ReduceOp::kSum : op; }

void Finish(const TwoLevelCall& call, const TensorList& values, ReduceOp op) {
  for (absl::Span<char> piece : values.pieces()) FinishReduction(values.type(), op, call.ranks, piece);
}

// Slice i belongs to local rank i; the others have none.
Parts DriverParts(uint64_t values, int drivers, int ranks) {
  Parts parts = EvenParts(values, drivers);
  parts.resize(ranks, ValueRange{values, values});
  return parts;
}

// Divides means itself: each value where it gets its result first.
absl::Status RingBetweenNodes(const TwoLevelCall& call, const TensorList& slice, ReduceOp op, RingStages stages) {
  const int h = call.between->size();
  stages.mean_of = call.ranks;
  return PassAroundRing(*call.between, slice, EvenParts(slice.size(), h), {0, 2 * (h - 1)}, op, call.call, stages);
}

absl::Status AllReduceBetweenNodes(const TwoLevelCall& call, const TensorList& slice, ReduceOp op) {
  // The same on all nodes, whether their values lie in an arena or not: all divide means alike.
  if (call.algorithm == Algorithm::kRing) return RingBetweenNodes(call, slice, op, {});
  absl::Status status = AllReduceBy(call.algorithm, *call.between, slice, Undivided(op), call.call);
  if (status.ok()) Finish(call, slice, op);
  return status;
}

// Between the two meetings only driver i touches slice i, on its node: each of them goes at its own pace.
absl::Status ArenaRingAllReduce(const TwoLevelCall& call, const TensorList& slice, ReduceOp op) {
  absl::Status status = call.node.meeting.Meet(call.node.purpose);
  if (status.ok() && call.between != nullptr) {
    RingStages stages;
    stages.before = [&](const TensorList& chunk) { ReduceFromArena(*call.arena, chunk, {chunk.type(), op, 0}); };
    stages.after = [&](const TensorList& chunk) { CopyToArena(*call.arena, chunk); };
    status = RingBetweenNodes(call, slice, op, std::move(stages));
  }
  return status.ok() ? call.node.meeting.Meet() : status;
}

}  // namespace

absl::Status TwoLevelAllReduce(const TwoLevelCall& call, const TensorList& values, ReduceOp op, int drivers) {
  NodeMeeting& meeting = call.node.meeting;
  const bool alone = meeting.ranks() == 1;
  const Reduction reduction = {values.type(), op, 0};
  const Parts parts = DriverParts(values.size(), drivers, meeting.ranks());
  if (!alone && call.arena != nullptr && call.algorithm == Algorithm::kRing) {
    return ArenaRingAllReduce(call, values.Slice(parts[meeting.rank()]), op);
  }
  absl::Status status;
  if (!alone) {
    status = call.arena != nullptr ? ArenaReduceScatter(call.node, *call.arena, values, parts, reduction)
                                   : StagedReduceScatter(call.node, values, parts, reduction);
  }
  if (status.ok() && call.between != nullptr) {
    status = AllReduceBetweenNodes(call, values.Slice(parts[meeting.rank()]), op);
  }
  if (!status.ok() || alone) return status;
  return call.arena != nullptr ? ArenaAllGather(call.node, *call.arena, values, parts)
                               : StagedAllGather(call.node, values, parts);
}

absl::Status TwoLevelBroadcast(const TwoLevelCall& call, const TensorList& values, int driver, int root_node) {
  absl::Status status;
  if (call.between != nullptr) status = BroadcastBy(call.algorithm, *call.between, values, root_node, call.call);
  if (!status.ok() || call.node.meeting.ranks() == 1) return status;
  return call.arena != nullptr ? ArenaBroadcast(call.node, *call.arena, values, driver)
                               : StagedBroadcast(call.node, values, driver);
}

absl::Status TwoLevelReduce(const TwoLevelCall& call, const TensorList& values, ReduceOp op, int driver,
                            int root_node) {
  const Reduction reduction = {values.type(), op, 0};
  absl::Status status;
  if (call.node.meeting.ranks() > 1) {
    status = call.arena != nullptr ? ArenaReduce(call.node, *call.arena, values, reduction, driver)
                                   : StagedReduce(call.node, values, reduction, driver);
  }
  if (!status.ok() || call.between == nullptr) return status;
  status = ReduceBy(call.algorithm, *call.between, values, Undivided(op), root_node, call.call);
  if (status.ok() && call.between->rank() == root_node) Finish(call, values, op);
  return status;
}

}  // namespace hooke
