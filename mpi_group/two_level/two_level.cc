#include "mpi_group/two_level/two_level.h"

#include <utility>
#include <vector>

#include "mpi_group/collectives/barrier.h"
#include "mpi_group/collectives/message_collectives.h"
#include "mpi_group/collectives/ring_pass.h"
#include "mpi_group/reduce/accumulator.h"
#include "mpi_group/two_level/two_level_wide.h"

namespace hooke {
namespace {

// Means are reduced as sums until the values of all nodes are in, and divided at the end.
ReduceOp Undivided(ReduceOp op) { return op == ReduceOp::kMean ? ReduceOp::kSum : op; }

void Finish(const TwoLevelCall& call, const TensorList& values, ReduceOp op) {
  for (absl::Span<char> piece : values.pieces()) FinishReduction(values.type(), op, call.ranks, piece);
}

// Slice i belongs to local rank i, for the first `drivers` ranks; the others have empty slices.
Parts DriverParts(uint64_t values, int drivers, int ranks) {
  Parts parts = EvenParts(values, drivers);
  parts.resize(ranks, ValueRange{values, values});
  return parts;
}

// All-reduces this driver's slice around the ring of nodes. It divides means itself, each value where its sum becomes
// complete.
absl::Status RingBetweenNodes(const TwoLevelCall& call, const TensorList& values, const Parts& slices, ReduceOp op,
                              RingStages stages) {
  const int h = call.between->size();
  const TensorList slice = values.Slice(slices[call.node.meeting.rank()]);
  stages.mean_of = call.ranks;
  stages.as_of_values = slices.front().size();  // The longest slice.
  return PassAroundRing(*call.between, slice, EvenParts(slice.size(), h), {0, 2 * (h - 1)}, op, call.call, stages);
}

absl::Status AllReduceBetweenNodes(const TwoLevelCall& call, const TensorList& values, const Parts& slices,
                                   ReduceOp op) {
  // Other nodes may be in a ring with stages meanwhile, so this one must send the same chunks and divide in the same
  // places.
  if (call.algorithm == Algorithm::kRing) return RingBetweenNodes(call, values, slices, op, {});
  const TensorList slice = values.Slice(slices[call.node.meeting.rank()]);
  absl::Status status = AllReduceBy(call.algorithm, *call.between, slice, Undivided(op), call.call);
  if (status.ok()) Finish(call, slice, op);
  return status;
}

// All-reduces values in an arena. Between the two meetings only driver i touches slice i on its node, so drivers need
// not wait for each other.
absl::Status ArenaRingAllReduce(const TwoLevelCall& call, const TensorList& values, const Parts& slices, ReduceOp op) {
  absl::Status status = call.node.meeting.Meet(call.node.purpose);
  if (status.ok() && call.between != nullptr) {
    RingStages stages;
    stages.before = [&](const RingChunk& chunk) {
      ReduceFromArena(*call.arena, chunk.values, {values.type(), op, 0});
      return absl::OkStatus();
    };
    stages.after = [&](const RingChunk& chunk) {
      CopyToArena(*call.arena, chunk.values);
      return absl::OkStatus();
    };
    status = RingBetweenNodes(call, values, slices, op, std::move(stages));
  }
  return status.ok() ? call.node.meeting.Meet() : status;
}

absl::Status ReduceScatterInNode(const TwoLevelCall& call, const TensorList& values, const Parts& parts, ReduceOp op) {
  const Reduction reduction = {values.type(), op, 0};
  return call.arena != nullptr ? ArenaReduceScatter(call.node, *call.arena, values, parts, reduction)
                               : StagedReduceScatter(call.node, values, parts, reduction);
}

absl::Status AllGatherInNode(const TwoLevelCall& call, const TensorList& values, const Parts& parts) {
  return call.arena != nullptr ? ArenaAllGather(call.node, *call.arena, values, parts)
                               : StagedAllGather(call.node, values, parts);
}

// Several lists as one; parts[i] is the range of list i.
struct Joined {
  TensorList values;
  Parts parts;
};
Joined Join(DataType type, const std::vector<TensorList>& lists) {
  Joined joined;
  joined.parts.reserve(lists.size());
  std::vector<absl::Span<char>> pieces;
  uint64_t end = 0;
  for (const TensorList& list : lists) {
    for (absl::Span<char> piece : list.pieces()) {
      // Pieces that are neighbours in memory become one piece again.
      if (!pieces.empty() && pieces.back().end() == piece.begin()) {
        pieces.back() = {pieces.back().data(), pieces.back().size() + piece.size()};
      } else {
        pieces.push_back(piece);
      }
    }
    joined.parts.push_back({end, end + list.size()});
    end += list.size();
  }
  joined.values = TensorList(type, pieces);
  return joined;
}

// The chunks on which all drivers of this node work while this rank works on `chunk`. `slices` are the drivers' slices;
// part i is driver i's chunk.
Joined ChunksOfDrivers(const std::vector<TensorList>& slices, int nodes, const RingChunk& chunk) {
  std::vector<TensorList> chunks;
  chunks.reserve(slices.size());
  for (const TensorList& slice : slices) {
    chunks.push_back(slice.Slice(Chunk(EvenParts(slice.size(), nodes)[chunk.part], chunk.index, chunk.portion)));
  }
  return Join(slices.front().type(), chunks);
}

// All-reduces values in ordinary memory, if all ranks are drivers. The drivers' rings have equally many chunks in the
// same order, so that all ranks of a node meet in every stage.
absl::Status StagedRingAllReduce(const TwoLevelCall& call, const TensorList& values, const Parts& slices, ReduceOp op) {
  std::vector<TensorList> of_drivers;
  of_drivers.reserve(slices.size());
  for (const ValueRange& slice : slices) of_drivers.push_back(values.Slice(slice));
  const int nodes = call.between->size();
  RingStages stages;
  stages.before = [&](const RingChunk& chunk) {
    const Joined all = ChunksOfDrivers(of_drivers, nodes, chunk);
    return StagedReduceScatter(call.node, all.values, all.parts, {values.type(), op, 0});
  };
  stages.after = [&](const RingChunk& chunk) {
    const Joined all = ChunksOfDrivers(of_drivers, nodes, chunk);
    return StagedAllGather(call.node, all.values, all.parts);
  };
  stages.meet = true;
  return RingBetweenNodes(call, values, slices, op, std::move(stages));
}

Joined PartsOfNode(const TensorList& values, const NodesParts& where, int node) {
  std::vector<TensorList> parts;
  parts.reserve(where.nodes.ranks_of_node[node].size());
  for (int rank : where.nodes.ranks_of_node[node]) parts.push_back(values.Slice(where.parts[rank]));
  return Join(values.type(), parts);
}

std::vector<TensorList> AllNodes(const TensorList& values, const NodesParts& where) {
  std::vector<TensorList> lists;
  lists.reserve(where.nodes.ranks_of_node.size());
  for (size_t node = 0; node < where.nodes.ranks_of_node.size(); ++node) {
    lists.push_back(PartsOfNode(values, where, static_cast<int>(node)).values);
  }
  return lists;
}

// Joins slice `driver` of each node's values; part i belongs to node i.
Joined SliceOfDriver(DataType type, const std::vector<TensorList>& nodes, int drivers, int driver) {
  std::vector<TensorList> slices;
  slices.reserve(nodes.size());
  for (const TensorList& node : nodes) slices.push_back(node.Slice(EvenParts(node.size(), drivers)[driver]));
  return Join(type, slices);
}

// Joins the slices of all drivers (two_level.h). Part i belongs to the node's i-th rank. It is empty if that rank is no
// driver.
Joined SlicesOfDrivers(DataType type, const std::vector<TensorList>& nodes, int drivers, int ranks) {
  std::vector<TensorList> slices(ranks, nodes.front().Slice({0, 0}));
  for (int driver = 0; driver < drivers; ++driver) {
    slices[driver] = SliceOfDriver(type, nodes, drivers, driver).values;
  }
  return Join(type, slices);
}

}  // namespace

absl::Status TwoLevelAllReduce(const TwoLevelCall& call, const TensorList& values, ReduceOp op, int drivers) {
  NodeMeeting& meeting = call.node.meeting;
  const bool alone = meeting.ranks() == 1;
  const bool wide = NeedsWideSums(values.type(), op, call.ranks);
  const Parts parts = DriverParts(values.size(), drivers, meeting.ranks());
  if (!alone && call.arena != nullptr && call.algorithm == Algorithm::kRing) {
    return wide ? WideArenaRingAllReduce(call, values.Slice(parts[meeting.rank()]), op)
                : ArenaRingAllReduce(call, values, parts, op);
  }
  if (!alone && !wide && call.algorithm == Algorithm::kRing && meeting.ranks() == drivers) {
    return StagedRingAllReduce(call, values, parts, op);
  }
  absl::Status status;
  if (wide) {
    status = WideAllReduce(call, values, parts, op);
  } else {
    if (!alone) status = ReduceScatterInNode(call, values, parts, op);
    if (status.ok() && call.between != nullptr) {
      status = AllReduceBetweenNodes(call, values, parts, op);
    }
  }
  if (!status.ok() || alone) return status;
  return AllGatherInNode(call, values, parts);
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

absl::Status TwoLevelAllGather(const TwoLevelCall& call, const TensorList& values, const NodesParts& where,
                               int drivers) {
  const NodeMeeting& meeting = call.node.meeting;
  const bool alone = meeting.ranks() == 1;
  absl::Status status;
  if (!alone) {
    const Joined own = PartsOfNode(values, where, where.node);
    status = AllGatherInNode(call, own.values, own.parts);
  }
  std::vector<TensorList> nodes = AllNodes(values, where);
  if (status.ok() && call.between != nullptr) {
    const Joined slice = SliceOfDriver(values.type(), nodes, drivers, meeting.rank());
    status = AllGatherBy(call.algorithm, *call.between, slice.values, slice.parts, call.call);
  }
  if (!status.ok() || alone) return status;
  // All ranks of the node have its own values already; only the received ones remain to be shared.
  nodes[where.node] = values.Slice({0, 0});
  const Joined came = SlicesOfDrivers(values.type(), nodes, drivers, meeting.ranks());
  return AllGatherInNode(call, came.values, came.parts);
}

absl::Status TwoLevelReduceScatter(const TwoLevelCall& call, const TensorList& values, const NodesParts& where,
                                   ReduceOp op, int drivers) {
  const NodeMeeting& meeting = call.node.meeting;
  const bool alone = meeting.ranks() == 1;
  const std::vector<TensorList> nodes = AllNodes(values, where);
  Joined slice;
  if (call.between != nullptr) slice = SliceOfDriver(values.type(), nodes, drivers, meeting.rank());
  absl::Status status;
  if (!alone) {
    const Joined all = SlicesOfDrivers(values.type(), nodes, drivers, meeting.ranks());
    status = ReduceScatterInNode(call, all.values, all.parts, op);
  }
  if (status.ok() && call.between != nullptr) {
    status = ReduceScatterBy(call.algorithm, *call.between, slice.values, slice.parts, Undivided(op), call.call);
    if (status.ok()) Finish(call, slice.values.Slice(slice.parts[where.node]), op);
  }
  if (!status.ok() || alone) return status;
  const TensorList& own = nodes[where.node];
  return AllGatherInNode(call, own, DriverParts(own.size(), drivers, meeting.ranks()));
}

absl::Status TwoLevelBarrier(const TwoLevelCall& call) {
  NodeMeeting& meeting = call.node.meeting;
  const bool alone = meeting.ranks() == 1;
  absl::Status status;
  if (!alone) status = meeting.Meet(call.node.purpose);
  if (status.ok() && call.between != nullptr) status = DisseminationBarrier(*call.between, call.call.deadline);
  return !status.ok() || alone ? status : meeting.Meet();
}

}  // namespace hooke
