#include "mpi_group/node/node_collectives.h"
#include "mpi_group/node/node_pieces.h"

namespace hooke {
namespace {

constexpr uint64_t kLine = 64;

uint64_t RoundUp(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// A slot's memory begins in the middle of a cache line. Small data goes into the rest of that line and travels together
// with the rank's arrival. Larger data begins at the next line, so that vectors are aligned.
constexpr uint64_t kRestOfLine = 32;
uint64_t Skip(uint64_t bytes) { return bytes <= kRestOfLine ? 0 : kRestOfLine; }

// Portion `index` of a range that is cut into portions of at most `bytes` bytes, a multiple of a cache line.
ByteRange Portion(ByteRange range, uint64_t index, uint64_t bytes) {
  const uint64_t begin = std::min(range.end, range.begin + index * bytes);
  return {begin, std::min(range.end, begin + bytes)};
}
uint64_t Portions(ByteRange range, uint64_t bytes) { return (range.size() + bytes - 1) / bytes; }

uint64_t ChunkOf(const NodeCall& call) {
  return std::max(kLine, std::min(call.chunk_bytes, StagingRoom(call.meeting)) / kLine * kLine);
}

absl::Status MeetFor(const NodeCall& call, uint64_t index) {
  return index == 0 ? call.meeting.Meet(call.purpose) : call.meeting.Meet();
}

// Moves the values through the slots, portion by portion. It calls bring(portion, slot) before each meeting, and
// take(portion, offset) after it; `offset` is where the portion lies in the slots.
template <typename Bring, typename Take>
absl::Status Stage(const NodeCall& call, ByteRange all, uint64_t chunk, const Bring& bring, const Take& take) {
  const uint64_t portions = Portions(all, chunk);
  for (uint64_t i = 0; i < portions; ++i) {
    const ByteRange portion = Portion(all, i, chunk);
    bring(portion, call.meeting.NextSlot() + Skip(portion.size()));
    absl::Status status = MeetFor(call, i);
    if (!status.ok()) return status;
    take(portion, Skip(portion.size()));
  }
  return absl::OkStatus();
}

// Reduces the others' data, which lies `skip` bytes into their slots, and this rank's own values into the given range
// of the values.
void TakeReduction(const NodeMeeting& meeting, uint64_t skip, const Reduction& reduction, const TensorList& values,
                   ByteRange range) {
  Sources sources(meeting.ranks());
  ForEachPiece(values, range, [&](char* memory, uint64_t bytes, uint64_t offset) {
    for (int rank = 0; rank < meeting.ranks(); ++rank) sources[rank] = meeting.Slot(rank) + skip + offset;
    sources[meeting.rank()] = memory;
    Reduce(reduction, sources, absl::MakeSpan(&memory, 1), bytes / SizeOf(reduction.type));
  });
}

// Sums the others' data, which lies `skip` bytes into their slots, and this rank's own values of the given range, into
// `sums`.
void TakeWideSums(const NodeMeeting& meeting, uint64_t skip, const TensorList& values, ByteRange range,
                  absl::Span<float> sums) {
  const uint64_t value_bytes = SizeOf(values.type());
  Sources sources(meeting.ranks());
  ForEachPiece(values, range, [&](char* memory, uint64_t bytes, uint64_t offset) {
    for (int rank = 0; rank < meeting.ranks(); ++rank) sources[rank] = meeting.Slot(rank) + skip + offset;
    sources[meeting.rank()] = memory;
    ReduceWide(values.type(), sources, sums.subspan(offset / value_bytes, bytes / value_bytes));
  });
}

uint64_t LongestPart(const TensorList& values, absl::Span<const ValueRange> parts) {
  uint64_t longest = 0;
  for (const ValueRange& part : parts) longest = std::max(longest, part.size() * SizeOf(values.type()));
  return longest;
}

// Brings a portion of each other rank's part to each meeting; a slot holds them one after the other. After each meeting
// it calls take(portion, offset) for this rank's own part; `offset` is where the portion lies in the slots.
template <typename Take>
absl::Status StageParts(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                        const Take& take) {
  const int n = call.meeting.ranks();
  const uint64_t chunk = std::max(kLine, ChunkOf(call) / n / kLine * kLine);
  const auto portion_of = [&](int rank, ByteRange turn) {
    return Portion(BytesOf(values, parts[rank]), turn.begin / chunk, chunk);
  };
  return Stage(
      call, {0, LongestPart(values, parts)}, chunk,
      [&](ByteRange turn, char* slot) {
        for (int rank = 0; rank < n; ++rank) {
          if (rank != call.meeting.rank()) CopyIn(values, portion_of(rank, turn), slot + rank * chunk);
        }
      },
      [&](ByteRange turn, uint64_t skip) {
        take(portion_of(call.meeting.rank(), turn), skip + call.meeting.rank() * chunk);
      });
}

}  // namespace

StagingSizes StagingFor(uint64_t chunk_bytes, int ranks) {
  const uint64_t chunk = std::max(RoundUp(chunk_bytes), kLine * ranks);
  return {kRestOfLine + chunk, 2 * LineSlice(chunk, 0, ranks).size()};
}

uint64_t StagingRoom(const NodeMeeting& meeting) { return meeting.slot_bytes() - kRestOfLine; }

absl::Status StagedAllReduce(const NodeCall& call, const TensorList& values, const Reduction& reduction) {
  return Stage(
      call, {0, values.bytes()}, ChunkOf(call), [&](ByteRange portion, char* slot) { CopyIn(values, portion, slot); },
      [&](ByteRange portion, uint64_t skip) { TakeReduction(call.meeting, skip, reduction, values, portion); });
}

// Portion i is in the slots at meeting i and is reduced after it. Its results are complete at meeting i + 1 and are
// copied after that. Two buffers for results are enough for the same reason as two slots are.
absl::Status StagedSlicesAllReduce(const NodeCall& call, const TensorList& values, const Reduction& reduction) {
  NodeMeeting& meeting = call.meeting;
  const int n = meeting.ranks();
  const ByteRange all = {0, values.bytes()};
  const uint64_t chunk = ChunkOf(call);
  const uint64_t room = LineSlice(StagingRoom(meeting), 0, n).size();
  const uint64_t portions = Portions(all, chunk);
  Sources sources(n);
  for (uint64_t i = 0; i <= portions; ++i) {
    const ByteRange portion = Portion(all, i, chunk);
    if (i < portions) CopyIn(values, portion, meeting.NextSlot() + kRestOfLine);
    absl::Status status = MeetFor(call, i);
    if (!status.ok()) return status;
    if (i < portions) {
      const ByteRange slice = LineSlice(portion.size(), meeting.rank(), n);
      for (int rank = 0; rank < n; ++rank) sources[rank] = meeting.Slot(rank) + kRestOfLine + slice.begin;
      char* result = meeting.Extra(meeting.rank()) + i % 2 * room;
      Reduce(reduction, sources, absl::MakeSpan(&result, 1), slice.size() / SizeOf(reduction.type));
    }
    if (i == 0) continue;
    const ByteRange previous = Portion(all, i - 1, chunk);
    for (int rank = 0; rank < n; ++rank) {
      const ByteRange slice = LineSlice(previous.size(), rank, n);
      CopyOut(meeting.Extra(rank) + (i - 1) % 2 * room, values,
              {previous.begin + slice.begin, previous.begin + slice.end});
    }
  }
  return absl::OkStatus();
}

absl::Status StagedReduce(const NodeCall& call, const TensorList& values, const Reduction& reduction, int root) {
  return Stage(
      call, {0, values.bytes()}, ChunkOf(call),
      [&](ByteRange portion, char* slot) {
        if (call.meeting.rank() != root) CopyIn(values, portion, slot);
      },
      [&](ByteRange portion, uint64_t skip) {
        if (call.meeting.rank() == root) TakeReduction(call.meeting, skip, reduction, values, portion);
      });
}

absl::Status StagedReduceScatter(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                                 const Reduction& reduction) {
  return StageParts(call, values, parts,
                    [&](ByteRange own, uint64_t skip) { TakeReduction(call.meeting, skip, reduction, values, own); });
}

absl::Status StagedWideReduceScatter(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts,
                                     absl::Span<float> sums) {
  const uint64_t begin = BytesOf(values, parts[call.meeting.rank()]).begin;
  return StageParts(call, values, parts, [&](ByteRange own, uint64_t skip) {
    TakeWideSums(call.meeting, skip, values, own, sums.subspan((own.begin - begin) / SizeOf(values.type())));
  });
}

absl::Status StagedAllGather(const NodeCall& call, const TensorList& values, absl::Span<const ValueRange> parts) {
  const uint64_t chunk = ChunkOf(call);
  const auto portion_of = [&](int rank, ByteRange turn) {
    return Portion(BytesOf(values, parts[rank]), turn.begin / chunk, chunk);
  };
  return Stage(
      call, {0, LongestPart(values, parts)}, chunk,
      [&](ByteRange turn, char* slot) { CopyIn(values, portion_of(call.meeting.rank(), turn), slot); },
      [&](ByteRange turn, uint64_t skip) {
        for (int rank = 0; rank < call.meeting.ranks(); ++rank) {
          if (rank == call.meeting.rank()) continue;
          CopyOut(call.meeting.Slot(rank) + skip, values, portion_of(rank, turn));
        }
      });
}

absl::Status StagedBroadcast(const NodeCall& call, const TensorList& values, int root) {
  return Stage(
      call, {0, values.bytes()}, ChunkOf(call),
      [&](ByteRange portion, char* slot) {
        if (call.meeting.rank() == root) CopyIn(values, portion, slot);
      },
      [&](ByteRange portion, uint64_t skip) {
        if (call.meeting.rank() != root) CopyOut(call.meeting.Slot(root) + skip, values, portion);
      });
}

}  // namespace hooke
