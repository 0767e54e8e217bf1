#include "mpi_group/two_level/two_level_wide.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "mpi_group/collectives/message_collectives.h"
#include "mpi_group/collectives/ring_pass.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/reduce/reduce_list.h"

namespace hooke {
namespace {

absl::Span<float> RoomForSums(const TwoLevelCall& call, uint64_t values) {
  std::vector<float>& sums = call.call.scratch.sums;
  if (sums.size() < values) sums.resize(values);
  return absl::MakeSpan(sums).first(values);
}

// Returns the sums of the values that the node's ranks have in this rank's slice.
absl::StatusOr<absl::Span<float>> SumsInNode(const TwoLevelCall& call, const TensorList& values,
                                             absl::Span<const ValueRange> parts) {
  const absl::Span<float> sums = RoomForSums(call, parts[call.node.meeting.rank()].size());
  absl::Status status = call.arena != nullptr ? ArenaWideReduceScatter(call.node, *call.arena, values, parts, sums)
                                              : StagedWideReduceScatter(call.node, values, parts, sums);
  if (!status.ok()) return status;
  return sums;
}

// Finishes and rounds the sums in `range`, which are complete, and stores them in the slice.
void Round(const TwoLevelCall& call, absl::Span<float> sums, ValueRange range, ReduceOp op, const TensorList& slice) {
  const absl::Span<float> whole = sums.subspan(range.begin, range.size());
  FinishReduction(DataType::kFloat32, op, call.ranks, MutableBytesOf(whole));
  NarrowIntoList(whole, slice.Slice(range));
}

// The range of `sums` that a chunk of them covers.
ValueRange RangeOf(const TensorList& chunk, absl::Span<const float> sums) {
  if (chunk.empty()) return {};
  const uint64_t begin = reinterpret_cast<const float*>(chunk.pieces().front().data()) - sums.data();
  return {begin, begin + chunk.size()};
}

// Two turns of the ring, chunk by chunk: as float32 until a chunk is complete, then as 16 bits. It sends the same
// messages as ReduceScatterBy and AllGatherBy do with a ring, because on other nodes the values may lie in no arena.
absl::Status ArenaRingBetweenNodes(const TwoLevelCall& call, const TensorList& slice, ReduceOp op) {
  const SharedArena& arena = *call.arena;
  const int h = call.between->size();
  const Parts parts = EvenParts(slice.size(), h);
  const absl::Span<float> sums = RoomForSums(call, slice.size());
  RingStages adding;
  adding.before = [&](const RingChunk& chunk) {
    const ValueRange range = RangeOf(chunk.values, sums);
    ReduceWideFromArena(arena, slice.Slice(range), sums.subspan(range.begin, range.size()));
    return absl::OkStatus();
  };
  adding.after = [&](const RingChunk& chunk) {
    const ValueRange range = RangeOf(chunk.values, sums);
    Round(call, sums, range, op, slice);
    CopyToArena(arena, slice.Slice(range));
    return absl::OkStatus();
  };
  absl::Status status =
      PassAroundRing(*call.between, TensorList(sums), parts, {0, h - 1}, ReduceOp::kSum, call.call, adding);
  if (!status.ok()) return status;
  RingStages sharing;
  sharing.after = [&](const RingChunk& chunk) {
    CopyToArena(arena, chunk.values);
    return absl::OkStatus();
  };
  return PassAroundRing(*call.between, slice, parts, {h - 1, 2 * (h - 1)}, ReduceOp::kSum, call.call, sharing);
}

}  // namespace

absl::Status WideAllReduce(const TwoLevelCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                           ReduceOp op) {
  const absl::StatusOr<absl::Span<float>> sums = SumsInNode(call, values, parts);
  if (!sums.ok() || call.between == nullptr) return sums.status();
  const TensorList slice = values.Slice(parts[call.node.meeting.rank()]);
  if (!Does(call.algorithm, Operation::kReduceScatter)) {
    // Algorithms for few values: all ranks get the same sums and round them in the same way.
    absl::Status status = AllReduceBy(call.algorithm, *call.between, TensorList(*sums), ReduceOp::kSum, call.call);
    if (status.ok()) Round(call, *sums, {0, slice.size()}, op, slice);
    return status;
  }
  const Parts nodes_parts = EvenParts(slice.size(), call.between->size());
  absl::Status status =
      ReduceScatterBy(call.algorithm, *call.between, TensorList(*sums), nodes_parts, ReduceOp::kSum, call.call);
  if (!status.ok()) return status;
  Round(call, *sums, nodes_parts[call.between->rank()], op, slice);
  return AllGatherBy(call.algorithm, *call.between, slice, nodes_parts, call.call);
}

// Drivers need not wait for each other, because between the two meetings only driver i touches slice i on its node.
absl::Status WideArenaRingAllReduce(const TwoLevelCall& call, const TensorList& slice, ReduceOp op) {
  absl::Status status = call.node.meeting.Meet(call.node.purpose);
  if (status.ok() && call.between != nullptr) status = ArenaRingBetweenNodes(call, slice, op);
  return status.ok() ? call.node.meeting.Meet() : status;
}

}  // namespace hooke
