#include "mpi_group/collectives/ring_pass.h"

#include <algorithm>
#include <functional>

#include "mpi_group/collectives/message_window.h"
#include "mpi_group/reduce/reduce_list.h"

namespace hooke {
namespace {

uint64_t ChunkValuesFor(absl::Span<const ValueRange> parts, DataType type, const Call& call) {
  const uint64_t longest = LongestChunkCount(parts, 1);
  return RingChunkValues({longest, SizeOf(type), call.chunk_bytes, call.window});
}

// Returns the parts from which the chunk size follows: those of the pass, or even parts of stages.as_of_values values.
Parts PartsToCut(absl::Span<const ValueRange> parts, const RingStages& stages) {
  if (stages.as_of_values > 0) return EvenParts(stages.as_of_values, static_cast<int>(parts.size()));
  return Parts(parts.begin(), parts.end());
}

// All parts are cut into equally many chunks; the last chunks of shorter parts are empty. So all ranks number a ring's
// messages in the same way: message k is chunk k % chunks in step k / chunks. Message k + chunks sends on the chunk
// that message k has brought.
//
// Why this cannot deadlock: a rank handles incoming messages in order. Before message k it starts receives and sends up
// to k + ahead. It waits only for messages up to k, hence for ranks that are less than `ahead` messages behind it. So
// the rank that is furthest behind can always go on. `ahead` is at most `chunks`, so that a chunk has arrived before it
// is sent on.
//
// A rank's bytes move while it waits for messages, but not while it waits in a stage. So where stages meet other ranks,
// all messages before k have left before a stage of message k begins; before `after`, message k has left too. Then no
// rank that is further behind waits for this one's messages.
class RingPass {
 public:
  RingPass(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts, RingSteps steps,
           ReduceOp op, const Call& call, const RingStages& stages)
      : n_(transport.size()),
        rank_(transport.rank()),
        values_(values),
        parts_(parts),
        steps_(steps),
        op_(op),
        stages_(stages),
        parts_to_cut_(PartsToCut(parts, stages)),
        chunk_values_(ChunkValuesFor(parts_to_cut_, values.type(), call)),
        chunks_(LongestChunkCount(parts_to_cut_, chunk_values_)),
        ahead_(std::min<uint64_t>(std::max(1, call.window), chunks_)),
        sends_(transport, call, call.window),
        receives_(transport, call, static_cast<int>(ahead_)) {}

  absl::Status Run() {
    const uint64_t messages = chunks_ * (steps_.end - steps_.first);
    for (uint64_t k = 0; k < messages; ++k) {
      const uint64_t end = std::min(messages, k + ahead_);
      if (absl::Status status = LetLeave(k); !status.ok()) return status;
      while (receives_.started() < end) {
        absl::Status status = StartReceive();
        if (!status.ok()) return status;
      }
      while (sends_.started() < end) {
        const uint64_t next = sends_.started();
        const TensorList chunk = ChunkOf(next, /*receiver=*/rank_ + 1);
        absl::Status status = next < chunks_ ? Do(stages_.before, next, rank_ + 1, chunk) : absl::OkStatus();
        if (status.ok()) status = sends_.Start((rank_ + 1) % n_, chunk);
        if (!status.ok()) return status;
      }
      const TensorList chunk = ChunkOf(k, rank_);
      absl::Status status = Reduces(k) ? Do(stages_.before, k, rank_, chunk) : absl::OkStatus();
      if (!status.ok()) return status;
      const absl::StatusOr<absl::Span<const char>> received = receives_.Next();
      if (!received.ok()) return received.status();
      if (Reduces(k)) ReduceReceived(k, *received, chunk);
      if (StepOf(k) < n_ - 2) continue;
      status = LetLeave(k + 1);
      if (status.ok()) status = Do(stages_.after, k, rank_, chunk);
      if (!status.ok()) return status;
    }
    return sends_.Finish();
  }

 private:
  int StepOf(uint64_t message) const { return steps_.first + static_cast<int>(message / chunks_); }
  bool Reduces(uint64_t message) const { return StepOf(message) < n_ - 1; }

  int PartOf(uint64_t message, int receiver) const { return (receiver + 2 * n_ - StepOf(message) - 2) % n_; }

  TensorList ChunkOf(uint64_t message, int receiver) const {
    return values_.Slice(Chunk(parts_[PartOf(message, receiver)], message % chunks_, chunk_values_));
  }

  // Waits until the first `count` messages have left, if a stage may follow that waits for other ranks.
  absl::Status LetLeave(uint64_t count) { return stages_.meet ? sends_.WaitForFirst(count) : absl::OkStatus(); }

  absl::Status Do(const std::function<absl::Status(const RingChunk&)>& stage, uint64_t message, int receiver,
                  const TensorList& chunk) const {
    if (!stage) return absl::OkStatus();
    return stage({chunk, PartOf(message, receiver), message % chunks_, chunk_values_});
  }

  absl::Status StartReceive() {
    const int previous = (rank_ + n_ - 1) % n_;
    const uint64_t next = receives_.started();
    const TensorList chunk = ChunkOf(next, rank_);
    if (Reduces(next)) return receives_.StartBeside(previous, chunk);
    // The chunk was sent from the same memory one turn of the ring earlier. That send must be done before new values
    // overwrite it.
    const uint64_t turn = chunks_ * (n_ - 1);
    if (next >= turn) {
      absl::Status status = sends_.WaitForFirst(next - turn + 1);
      if (!status.ok()) return status;
    }
    return receives_.StartInto(previous, chunk);
  }

  void ReduceReceived(uint64_t message, absl::Span<const char> received, const TensorList& chunk) {
    const bool last = StepOf(message) == n_ - 2;
    const int mean_of = stages_.mean_of > 0 ? stages_.mean_of : n_;
    ReduceIntoList({values_.type(), op_, last ? mean_of : 0}, absl::MakeConstSpan(&received, 1), /*place=*/1, chunk);
  }

  const int n_;
  const int rank_;
  const TensorList& values_;
  const absl::Span<const ValueRange> parts_;
  const RingSteps steps_;
  const ReduceOp op_;
  const RingStages& stages_;
  const Parts parts_to_cut_;
  const uint64_t chunk_values_;
  const uint64_t chunks_;
  const uint64_t ahead_;
  SendWindow sends_;
  ReceiveWindow receives_;
};

}  // namespace

absl::Status PassAroundRing(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                            RingSteps steps, ReduceOp op, const Call& call, const RingStages& stages) {
  return RingPass(transport, values, parts, steps, op, call, stages).Run();
}

}  // namespace hooke
