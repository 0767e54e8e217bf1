#include "mpi_group/collectives/pairwise.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "mpi_group/collectives/message_window.h"
#include "mpi_group/reduce/reduce_list.h"

namespace hooke {
namespace {

// Returns how many rounds are under way at once. In a round every rank sends a chunk to each other rank and receives
// one from each. All parts take equally many rounds: the last chunks of shorter parts are empty.
//
// Enough rounds are under way to make about 16 messages to or from a rank. There are at least two, so that ranks need
// not run in lockstep, but never more than the window.
int RoundsAhead(const Call& call, int n) {
  constexpr int kMessages = 16;
  return std::max(1, std::min(call.window, std::max(2, kMessages / std::max(1, n - 1))));
}

class PairwiseRounds {
 public:
  PairwiseRounds(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts, const Call& call)
      : n_(transport.size()),
        rank_(transport.rank()),
        values_(values),
        parts_(parts),
        chunk_values_(ChunkValues(call, values.type())),
        rounds_(LongestChunkCount(parts, chunk_values_)),
        ahead_(RoundsAhead(call, n_)),
        sends_(transport, call, ahead_ * (n_ - 1)),
        receives_(transport, call, ahead_ * (n_ - 1)) {}

  // Free of deadlock: in round r a rank waits only for messages that a rank in round r + 1 - ahead_ or later has
  // started. So the rank that is last can always go on.
  absl::Status ReduceScatter(ReduceOp op) {
    uint64_t started = 0;
    for (uint64_t round = 0; round < rounds_; ++round) {
      for (; started < std::min(rounds_, round + ahead_); ++started) {
        absl::Status status = StartReduceScatter(started);
        if (!status.ok()) return status;
      }
      absl::InlinedVector<absl::Span<const char>, 8> others(n_ - 1);
      for (int distance = 1; distance < n_; ++distance) {
        const absl::StatusOr<absl::Span<const char>> received = receives_.Next();
        if (!received.ok()) return received.status();
        const int from = Before(distance);
        // The others stand in rank order without a gap for this rank, because ReduceIntoList puts this rank's own
        // values in their place.
        others[from < rank_ ? from : from - 1] = *received;
      }
      ReduceIntoList({values_.type(), op, n_}, others, /*place=*/rank_, ChunkOf(rank_, round));
    }
    return sends_.Finish();
  }

  absl::Status AllGather() {
    uint64_t started = 0;
    for (uint64_t round = 0; round < rounds_; ++round) {
      for (; started < std::min(rounds_, round + ahead_); ++started) {
        absl::Status status = StartAllGather(started);
        if (!status.ok()) return status;
      }
      for (int distance = 1; distance < n_; ++distance) {
        const absl::StatusOr<absl::Span<const char>> received = receives_.Next();
        if (!received.ok()) return received.status();
      }
    }
    return sends_.Finish();
  }

 private:
  int After(int distance) const { return (rank_ + distance) % n_; }
  int Before(int distance) const { return (rank_ + n_ - distance) % n_; }
  TensorList ChunkOf(int rank, uint64_t round) const {
    return values_.Slice(Chunk(parts_[rank], round, chunk_values_));
  }

  absl::Status StartReduceScatter(uint64_t round) {
    absl::Status status;
    const TensorList own = ChunkOf(rank_, round);
    for (int distance = 1; distance < n_ && status.ok(); ++distance) {
      status = receives_.StartBeside(Before(distance), own);
    }
    for (int distance = 1; distance < n_ && status.ok(); ++distance) {
      status = sends_.Start(After(distance), ChunkOf(After(distance), round));
    }
    return status;
  }

  absl::Status StartAllGather(uint64_t round) {
    absl::Status status;
    const TensorList own = ChunkOf(rank_, round);
    for (int distance = 1; distance < n_ && status.ok(); ++distance) {
      status = receives_.StartInto(Before(distance), ChunkOf(Before(distance), round));
    }
    for (int distance = 1; distance < n_ && status.ok(); ++distance) status = sends_.Start(After(distance), own);
    return status;
  }

  const int n_;
  const int rank_;
  const TensorList& values_;
  const absl::Span<const ValueRange> parts_;
  const uint64_t chunk_values_;
  const uint64_t rounds_;
  const int ahead_;
  SendWindow sends_;
  ReceiveWindow receives_;
};

}  // namespace

absl::Status PairwiseReduceScatter(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                                   ReduceOp op, const Call& call) {
  if (transport.size() == 1) return absl::OkStatus();
  return PairwiseRounds(transport, values, parts, call).ReduceScatter(op);
}

absl::Status PairwiseAllGather(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                               const Call& call) {
  if (transport.size() == 1) return absl::OkStatus();
  return PairwiseRounds(transport, values, parts, call).AllGather();
}

absl::Status PairwiseAllReduce(Transport& transport, const TensorList& values, ReduceOp op, const Call& call) {
  const Parts parts = EvenParts(values.size(), transport.size());
  absl::Status status = PairwiseReduceScatter(transport, values, parts, op, call);
  return status.ok() ? PairwiseAllGather(transport, values, parts, call) : status;
}

}  // namespace hooke
