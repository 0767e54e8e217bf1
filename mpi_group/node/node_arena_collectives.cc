#include <utility>

#include "mpi_group/node/node_collectives.h"
#include "mpi_group/node/node_pieces.h"

namespace hooke {
namespace {

// Does the work between two meetings. Before the first one other ranks may still write their values, and after the
// second one they may write them again.
template <typename Work>
absl::Status InPlace(const NodeCall& call, const Work& work) {
  absl::Status status = call.meeting.Meet(call.purpose);
  if (!status.ok()) return status;
  work();
  return call.meeting.Meet();
}

// Reduces a range of all ranks' values and writes the result to ranks [to.first, to.second).
void ReduceRange(const SharedArena& arena, const TensorList& values, ByteRange range, const Reduction& reduction,
                 std::pair<int, int> to) {
  Sources sources(arena.ranks());
  Destinations destinations(to.second - to.first);
  ForEachPiece(values, range, [&](char* memory, uint64_t bytes, uint64_t) {
    for (int rank = 0; rank < arena.ranks(); ++rank) sources[rank] = arena.PlaceOf(rank, memory);
    for (int rank = to.first; rank < to.second; ++rank) destinations[rank - to.first] = arena.PlaceOf(rank, memory);
    Reduce(reduction, sources, destinations, bytes / SizeOf(reduction.type));
  });
}

// Copies a range of one rank's values to all other ranks. It does so in blocks that stay in the cache, so that they are
// read from memory only once.
void CopyRange(const SharedArena& arena, const TensorList& values, ByteRange range, int from) {
  constexpr uint64_t kBlock = uint64_t{64} << 10;
  ForEachPiece(values, range, [&](char* memory, uint64_t bytes, uint64_t) {
    for (uint64_t done = 0; done < bytes; done += kBlock) {
      const char* source = arena.PlaceOf(from, memory + done);
      for (int rank = 0; rank < arena.ranks(); ++rank) {
        if (rank == from) continue;
        std::memcpy(arena.PlaceOf(rank, memory + done), source, std::min(kBlock, bytes - done));
      }
    }
  });
}

}  // namespace

absl::Status ArenaAllReduce(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                            const Reduction& reduction) {
  return InPlace(call, [&] {
    ReduceRange(arena, values, LineSlice(values.bytes(), arena.rank(), arena.ranks()), reduction, {0, arena.ranks()});
  });
}

absl::Status ArenaReduce(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                         const Reduction& reduction, int root) {
  return InPlace(call, [&] {
    ReduceRange(arena, values, LineSlice(values.bytes(), arena.rank(), arena.ranks()), reduction, {root, root + 1});
  });
}

absl::Status ArenaReduceScatter(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                                absl::Span<const ValueRange> parts, const Reduction& reduction) {
  return InPlace(call, [&] {
    ReduceRange(arena, values, BytesOf(values, parts[arena.rank()]), reduction, {arena.rank(), arena.rank() + 1});
  });
}

absl::Status ArenaWideReduceScatter(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                                    absl::Span<const ValueRange> parts, absl::Span<float> sums) {
  return InPlace(call, [&] { ReduceWideFromArena(arena, values.Slice(parts[arena.rank()]), sums); });
}

void ReduceWideFromArena(const SharedArena& arena, const TensorList& values, absl::Span<float> sums) {
  Sources sources(arena.ranks());
  for (absl::Span<char> piece : values.pieces()) {
    for (int rank = 0; rank < arena.ranks(); ++rank) sources[rank] = arena.PlaceOf(rank, piece.data());
    const uint64_t count = piece.size() / SizeOf(values.type());
    ReduceWide(values.type(), sources, sums.first(count));
    sums.remove_prefix(count);
  }
}

void ReduceFromArena(const SharedArena& arena, const TensorList& values, const Reduction& reduction) {
  ReduceRange(arena, values, {0, values.bytes()}, reduction, {arena.rank(), arena.rank() + 1});
}

void CopyToArena(const SharedArena& arena, const TensorList& values) {
  CopyRange(arena, values, {0, values.bytes()}, arena.rank());
}

absl::Status ArenaAllGather(const NodeCall& call, const SharedArena& arena, const TensorList& values,
                            absl::Span<const ValueRange> parts) {
  return InPlace(call, [&] { CopyRange(arena, values, BytesOf(values, parts[arena.rank()]), arena.rank()); });
}

absl::Status ArenaBroadcast(const NodeCall& call, const SharedArena& arena, const TensorList& values, int root) {
  return InPlace(call, [&] { CopyRange(arena, values, LineSlice(values.bytes(), arena.rank(), arena.ranks()), root); });
}

}  // namespace hooke
