#include "mpi_group/cuda/staged_passes.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/call.h"

namespace hooke {
namespace {

constexpr uint64_t kSlots = 4;  // Number of outgoing chunks that may be read ahead.

int64_t Input(int rank, uint64_t place) {
  return (int64_t{rank} + 1) * 1000003 + static_cast<int64_t>(place * place % 911);
}

// One rank that runs its passes as a staged group does: it reads outgoing chunks as early as it may.
struct Rank {
  std::vector<StagedPass> passes;
  std::vector<int64_t> values;
  std::vector<std::vector<int64_t>> read;  // The outgoing values of each pass read so far.
  uint64_t done = 0;
  bool sent = false;  // True if pass `done` has sent its chunk.
};

using Message = std::vector<int64_t>;

// Does what the rank can do without waiting; returns false if it can do nothing. `to` holds messages to the next rank,
// `from` those from the previous one.
bool Advance(Rank& rank, bool reduces, std::deque<Message>& to, std::deque<Message>& from) {
  if (rank.done == rank.passes.size()) return false;
  while (rank.read.size() < rank.passes.size() && rank.read.size() < rank.done + kSlots &&
         rank.passes[rank.read.size()].needs <= rank.done) {
    const ValueRange out = rank.passes[rank.read.size()].out;
    rank.read.emplace_back(rank.values.begin() + out.begin, rank.values.begin() + out.end);
  }
  const StagedPass& pass = rank.passes[rank.done];
  if (rank.read.size() <= rank.done) {
    ADD_FAILURE() << "pass " << rank.done << " needs pass " << pass.needs << ", which is not done before it";
    return false;
  }
  const bool sends = !rank.sent;
  if (sends && pass.out.size() > 0) to.push_back(rank.read[rank.done]);
  rank.sent = true;
  if (pass.in.size() > 0) {
    if (from.empty()) return sends;
    const Message message = from.front();
    from.pop_front();
    EXPECT_EQ(message.size(), pass.in.size());
    for (uint64_t i = 0; i < message.size() && i < pass.in.size(); ++i) {
      int64_t& value = rank.values[pass.in.begin + i];
      value = reduces ? value + message[i] : message[i];
    }
  }
  ++rank.done;
  rank.sent = false;
  return true;
}

void RunAll(std::vector<Rank>& ranks, bool reduces) {
  const size_t n = ranks.size();
  std::vector<std::deque<Message>> to(n);  // to[r]: messages from the previous rank to rank r.
  for (bool moves = true; moves;) {
    moves = false;
    for (size_t r = 0; r < n; ++r) moves = Advance(ranks[r], reduces, to[(r + 1) % n], to[r]) || moves;
  }
  for (size_t r = 0; r < n; ++r) {
    EXPECT_EQ(ranks[r].done, ranks[r].passes.size()) << "rank " << r << " waits for ever";
    EXPECT_TRUE(to[r].empty()) << "rank " << r << " was sent more than it takes";
  }
}

struct PassesCase {
  int ranks;
  uint64_t values;
  uint64_t chunk_values;
  bool uneven;

  // Uneven parts leave some ranks with nothing and some values outside all parts.
  Parts parts() const {
    Parts parts = EvenParts(values, ranks);
    if (!uneven) return parts;
    for (int rank = 0; rank < ranks; ++rank) {
      parts[rank].end = rank % 3 == 1 ? parts[rank].begin : parts[rank].end - parts[rank].size() / (rank + 2);
    }
    return parts;
  }
};

std::vector<PassesCase> AllCases() {
  std::vector<PassesCase> cases;
  for (int ranks : {1, 2, 3, 4, 5, 8}) {
    for (uint64_t values : {0, 1, 7, 100, 1009}) {
      for (uint64_t chunk_values : {1, 3, 64, 5000}) {
        for (bool uneven : {false, true}) cases.push_back({ranks, values, chunk_values, uneven});
      }
    }
  }
  return cases;
}

std::vector<Rank> MakeRanks(const PassesCase& tested) {
  std::vector<Rank> ranks(tested.ranks);
  for (int rank = 0; rank < tested.ranks; ++rank) {
    ranks[rank].values.resize(tested.values);
    for (uint64_t i = 0; i < tested.values; ++i) ranks[rank].values[i] = Input(rank, i);
  }
  return ranks;
}

std::string NameOf(const PassesCase& tested) {
  return absl::StrCat(tested.ranks, " ranks, ", tested.values, " values in chunks of ", tested.chunk_values,
                      tested.uneven ? ", uneven parts" : "");
}

// For all ranks, parts and chunks: each rank ends with the sum of its own part. No rank waits for a message that nobody
// sends, and nothing is sent before it is complete. Each value of the part is completed once, in the last step.
TEST(StagedPassesTest, ReduceScatter) {
  for (const PassesCase& tested : AllCases()) {
    SCOPED_TRACE(NameOf(tested));
    const Parts parts = tested.parts();
    std::vector<Rank> ranks = MakeRanks(tested);
    for (int rank = 0; rank < tested.ranks; ++rank) {
      ranks[rank].passes = ReduceScatterPasses(rank, parts, tested.chunk_values);
    }
    RunAll(ranks, /*reduces=*/true);
    for (int rank = 0; rank < tested.ranks; ++rank) {
      for (uint64_t i = parts[rank].begin; i < parts[rank].end; ++i) {
        int64_t sum = 0;
        for (int other = 0; other < tested.ranks; ++other) sum += Input(other, i);
        ASSERT_EQ(ranks[rank].values[i], sum) << "at " << i << " on rank " << rank;
      }
      uint64_t completed = tested.ranks == 1 ? parts[rank].end : parts[rank].begin;
      for (const StagedPass& pass : ranks[rank].passes) {
        if (!pass.last || pass.in.size() == 0) continue;
        ASSERT_EQ(pass.in.begin, completed);
        completed = pass.in.end;
      }
      EXPECT_EQ(completed, parts[rank].end);
    }
  }
}

// All ranks end with all parts; values outside the parts are unchanged.
TEST(StagedPassesTest, AllGather) {
  for (const PassesCase& tested : AllCases()) {
    SCOPED_TRACE(NameOf(tested));
    const Parts parts = tested.parts();
    std::vector<Rank> ranks = MakeRanks(tested);
    for (int rank = 0; rank < tested.ranks; ++rank) {
      ranks[rank].passes = AllGatherPasses(rank, parts, tested.chunk_values);
    }
    RunAll(ranks, /*reduces=*/false);
    for (int rank = 0; rank < tested.ranks; ++rank) {
      std::vector<int64_t> expected(tested.values);
      for (uint64_t i = 0; i < tested.values; ++i) expected[i] = Input(rank, i);
      for (int owner = 0; owner < tested.ranks; ++owner) {
        for (uint64_t i = parts[owner].begin; i < parts[owner].end; ++i) expected[i] = Input(owner, i);
      }
      EXPECT_EQ(ranks[rank].values, expected) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace hooke
