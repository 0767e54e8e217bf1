#ifndef HOOKE_MPI_GROUP_NODE_NODE_COLLECTIVES_H_
#define HOOKE_MPI_GROUP_NODE_NODE_COLLECTIVES_H_

// Collectives among the ranks of one node, through memory that they share. They are functions over a NodeMeeting, as
// others are functions over a Transport. n is the number of the node's ranks, V the bytes of the values.
//
// Arena... functions work in place on values that lie in an arena at the same offsets on all ranks. They take two
// meetings, and values go directly from one rank's memory to another's.
//
// Staged... functions take values anywhere, cut into chunks with a meeting for each. Each rank copies a chunk to its
// slot, all meet, and each takes what it needs from the slots. Meanwhile faster ranks already copy the next chunk to
// their other slot.
//
// Values are reduced in rank order, and a result that several ranks get is bitwise equal on all of them. After an error
// the values are unspecified. `reduction.mean_of` is 0 if ranks on other nodes contribute too: then the caller divides.

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
  // Chunk size of Staged... functions. A size above StagingRoom(meeting) counts as StagingRoom(meeting).
  uint64_t chunk_bytes = uint64_t{64} << 10;
};

// Sizes of a meeting's memory (NodeMeeting::Options).
struct StagingSizes {
  uint64_t slot_bytes = 0;
  uint64_t extra_bytes = 0;
};
// Returns the sizes of a meeting's memory that suffice for chunks of `chunk_bytes`.
StagingSizes StagingFor(uint64_t chunk_bytes, int ranks);
// The largest chunk for which the meeting's slots have room.
uint64_t StagingRoom(const NodeMeeting& meeting);

// Each rank reduces 1/n of the values of all ranks and writes the result to all, in place: it reads V and writes V.
absl::Status ArenaAllReduce(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                            const Reduction& reduction);
// Each rank reduces 1/n of the values into the root's memory.
absl::Status ArenaReduce(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                         const Reduction& reduction, int root);
// Each rank reduces its own part of all ranks' values. Parts are as for Group::ReduceScatter, one per rank of the node.
absl::Status ArenaReduceScatter(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                                absl::Span<const ValueRange> parts, const Reduction& reduction);
// Reduce-scatters 16-bit values to their unrounded sums: the sums of this rank's own part go to `sums`, which has as
// many values as the part. The values stay unchanged.
absl::Status ArenaWideReduceScatter(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                                    absl::Span<const ValueRange> parts, absl::Span<float> sums);
// Each rank writes its own part into the memory of all others.
absl::Status ArenaAllGather(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                            absl::Span<const ValueRange> parts);
// Each rank copies 1/n of the root's values to all others.
absl::Status ArenaBroadcast(const NodeCall& call, const SharedArena& arena, const TensorList& values, int root);

// The work of the functions above without the meetings, for a range of values that no other rank touches at the same
// time. ReduceFromArena() replaces this rank's values by the reduction of all ranks' values. CopyToArena() copies them
// to all other ranks.
void ReduceFromArena(const SharedArena& arena, const TensorList& values, const Reduction& reduction);
void CopyToArena(const SharedArena& arena, const TensorList& values);
// Writes the float32 sums of all ranks' 16-bit values to `sums`, as ReduceWide does. `sums` has as many values as
// `values`, which stay unchanged.
void ReduceWideFromArena(const SharedArena& arena, const TensorList& values, absl::Span<float> sums);

// Every rank reduces all values itself: it copies V and reads nV. Best for two ranks, and for few values.
absl::Status StagedAllReduce(const NodeCall& call, const TensorList& values, const Reduction& reduction);
// Each rank reduces 1/n of each chunk, and copies the others' results while it reduces the next chunk. It copies 2V and
// reads V.
absl::Status StagedSlicesAllReduce(const NodeCall& call, const TensorList& values, const Reduction& reduction);
// The root reduces all values: it reads nV, while each other rank copies V.
absl::Status StagedReduce(const NodeCall& call, const TensorList& values, const Reduction& reduction, int root);
absl::Status StagedReduceScatter(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                                 const Reduction& reduction);
absl::Status StagedWideReduceScatter(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                                     absl::Span<float> sums);
absl::Status StagedAllGather(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts);
// The root copies V to its slots while the others copy V from them.
absl::Status StagedBroadcast(const NodeCall& call, const TensorList& values, int root);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_NODE_COLLECTIVES_H_
