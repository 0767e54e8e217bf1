#ifndef HOOKE_MPI_GROUP_NODE_NODE_COLLECTIVES_H_
#define HOOKE_MPI_GROUP_NODE_NODE_COLLECTIVES_H_

// Collectives among the ranks of one node, through memory that all of them reach; functions over a NodeMeeting as
// others are over a Transport. n is the number of the node's ranks, V the bytes of the values.
//
// Arena...: in place, on values that lie in an arena at the same places on all ranks; two meetings; no value is copied.
// Staged...: on values anywhere, cut into chunks: each rank copies a chunk to its slot, all meet, each takes from the
// slots what it needs, while who is faster brings the next one. One meeting per chunk.
//
// After OK all ranks hold bitwise the same where they are to hold the same; values are reduced in rank order. After an
// error the values are unspecified. `reduction.mean_of` may be 0: then there are more ranks on other nodes.

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/node/node_meeting.h"
#include "mpi_group/node/shared_arena.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

struct NodeCall {
  NodeMeeting& meeting;
  Purpose purpose;
  uint64_t chunk_bytes = uint64_t{64} << 10;  // Of staged ones; no more than StagingRoom(meeting) is used.
};

// What a meeting needs for chunks of this many bytes.
struct StagingSizes {
  uint64_t slot_bytes = 0;
  uint64_t extra_bytes = 0;
};
StagingSizes StagingFor(uint64_t chunk_bytes, int ranks);
uint64_t StagingRoom(const NodeMeeting& meeting);

// Each rank reduces 1/n of the values from all and writes it to all: reads V, writes V, all of it in place.
absl::Status ArenaAllReduce(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                            const Reduction& reduction);
// Each rank reduces 1/n of the values into the root's memory.
absl::Status ArenaReduce(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                         const Reduction& reduction, int root);
// Each rank reduces its own part from all; parts as for Group::ReduceScatter, one per rank of the node.
absl::Status ArenaReduceScatter(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                                absl::Span<const ValueRange> parts, const Reduction& reduction);
// The same of 16-bit values, whose sums are not rounded but left in `sums`, as many as the rank's own part has; the
// values stay as they are.
absl::Status ArenaWideReduceScatter(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                                    absl::Span<const ValueRange> parts, absl::Span<float> sums);
// Each rank writes its own part to all others.
absl::Status ArenaAllGather(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                            absl::Span<const ValueRange> parts);
// Each rank copies 1/n of the root's values to all others.
absl::Status ArenaBroadcast(const NodeCall& call, const SharedArena& arena, const TensorList& values, int root);

// The same work without the meetings, for a rank that works on values that no other rank touches between two meetings:
// its own values become the reduction of all ranks'; and all others get its values.
void ReduceFromArena(const SharedArena& arena, const TensorList& values, const Reduction& reduction);
void CopyToArena(const SharedArena& arena, const TensorList& values);
// The sums of all ranks' 16-bit values, as ReduceWide makes them; as many as `values`, which stay as they are.
void ReduceWideFromArena(const SharedArena& arena, const TensorList& values, absl::Span<float> sums);

// Every rank reduces all values from all slots: copies V, reads nV. For two ranks, and for few values.
absl::Status StagedAllReduce(const NodeCall& call, const TensorList& values, const Reduction& reduction);
// Each rank reduces 1/n of each chunk, and takes the others' while it reduces the next one: copies 2V, reads V.
absl::Status StagedSlicesAllReduce(const NodeCall& call, const TensorList& values, const Reduction& reduction);
// The others copy V, the root reads nV.
absl::Status StagedReduce(const NodeCall& call, const TensorList& values, const Reduction& reduction, int root);
absl::Status StagedReduceScatter(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                                 const Reduction& reduction);
absl::Status StagedWideReduceScatter(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                                     absl::Span<float> sums);
absl::Status StagedAllGather(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts);
// The root copies V, while the others do.
absl::Status StagedBroadcast(const NodeCall& call, const TensorList& values, int root);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_NODE_COLLECTIVES_H_
