#include "mpi_group/node/node_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/call.h"
#include "mpi_group/node/node_ranks.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/reduce/reduce.h"

namespace hooke {
namespace {

constexpr absl::Duration kLong = absl::Seconds(20);
// Number of guard values in each gap: before, between and after the pieces of a list.
constexpr uint64_t kUntouched = 3;

struct Case {
  int ranks = 2;
  uint64_t values = 0;
  uint64_t chunk_bytes = 256;
  bool arena = false;
};

int64_t Input(int rank, uint64_t index) { return (rank + 1) * static_cast<int64_t>(index % 1000 + 1); }
int64_t Sum(int ranks, uint64_t index) {
  int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += Input(rank, index);
  return sum;
}

// One rank's list of two pieces, in an arena or in memory of its own.
struct RankList {
  RankList(NodeRanks& ranks, int rank, const Case& tested) : own(tested.values + 3 * kUntouched) {
    absl::Span<int64_t> room = absl::MakeSpan(own);
    if (tested.arena) room = {reinterpret_cast<int64_t*>(ranks.arena(rank).ValuesOf(rank).data()), own.size()};
    std::fill(room.begin(), room.end(), -1);
    const uint64_t half = tested.values / 2;
    first = room.subspan(kUntouched, half);
    second = room.subspan(2 * kUntouched + half, tested.values - half);
    list = TensorList({first, second});
    all = room;
    for (uint64_t i = 0; i < tested.values; ++i) at(i) = Input(rank, i);
  }

  int64_t& at(uint64_t index) { return index < first.size() ? first[index] : second[index - first.size()]; }
  bool outside_untouched() const {
    return std::count(all.begin(), all.end(), -1) == static_cast<int64_t>(3 * kUntouched);
  }

  std::vector<int64_t> own;
  absl::Span<int64_t> all, first, second;
  TensorList list;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (int ranks : {1, 2, 3, 4, 8}) {
    for (uint64_t values : {1, 2, 7, 33, 1000, 5003}) {
      for (uint64_t chunk_bytes : {64, 1024, 1 << 20}) {
        for (bool arena : {false, true}) cases.push_back({ranks, values, chunk_bytes, arena});
      }
    }
  }
  return cases;
}

using Body = std::function<absl::Status(int rank, const NodeCall&, const SharedArena&, const TensorList&)>;
using Expected = std::function<int64_t(int rank, uint64_t index)>;

// Runs the body on all ranks of a case, three times, and expects `expected` of every value, except where that is -1.
void Check(const Case& tested, const Body& body, const Expected& expected) {
  SCOPED_TRACE(absl::StrCat(tested.ranks, " ranks, ", tested.values, " values, chunks of ", tested.chunk_bytes,
                            tested.arena ? ", in an arena" : ""));
  NodeRanks ranks(tested.ranks, {}, {}, (tested.values + 3 * kUntouched) * sizeof(int64_t));
  RunRanks(tested.ranks, [&](int rank) {
    for (int round = 0; round < 3; ++round) {
      RankList values(ranks, rank, tested);
      ranks.meeting(rank).Begin(kLong);
      const NodeCall call = {ranks.meeting(rank), Purpose(), tested.chunk_bytes};
      ASSERT_EQ(body(rank, call, ranks.arena(rank), values.list), absl::OkStatus());
      for (uint64_t i = 0; i < tested.values; ++i) {
        const int64_t wanted = expected(rank, i);
        if (wanted != -1) {
          ASSERT_EQ(values.at(i), wanted) << "at " << i << " on rank " << rank;
        }
      }
      ASSERT_TRUE(values.outside_untouched());
    }
  });
}

Reduction SumOf(int ranks) { return {DataType::kInt64, ReduceOp::kSum, ranks}; }

// With every algorithm every rank ends with the sum, and memory around the list is unchanged.
TEST(NodeCollectivesTest, AllReduce) {
  for (const Case& tested : AllCases()) {
    const Expected sum = [&](int, uint64_t index) { return Sum(tested.ranks, index); };
    if (tested.arena) {
      Check(
          tested,
          [&](int, const NodeCall& call, const SharedArena& arena, const TensorList& list) {
            return ArenaAllReduce(call, arena, list, SumOf(tested.ranks));
          },
          sum);
      continue;
    }
    Check(
        tested,
        [&](int, const NodeCall& call, const SharedArena&, const TensorList& list) {
          return StagedAllReduce(call, list, SumOf(tested.ranks));
        },
        sum);
    Check(
        tested,
        [&](int, const NodeCall& call, const SharedArena&, const TensorList& list) {
          return StagedSlicesAllReduce(call, list, SumOf(tested.ranks));
        },
        sum);
  }
}

// The root, here a middle rank, ends with the sum.
TEST(NodeCollectivesTest, Reduce) {
  for (const Case& tested : AllCases()) {
    const int root = tested.ranks / 2;
    Check(
        tested,
        [&](int, const NodeCall& call, const SharedArena& arena, const TensorList& list) {
          return tested.arena ? ArenaReduce(call, arena, list, SumOf(tested.ranks), root)
                              : StagedReduce(call, list, SumOf(tested.ranks), root);
        },
        [&](int rank, uint64_t index) { return rank == root ? Sum(tested.ranks, index) : -1; });
  }
}

// Every rank ends with the root's values.
TEST(NodeCollectivesTest, Broadcast) {
  for (const Case& tested : AllCases()) {
    const int root = tested.ranks - 1;
    Check(
        tested,
        [&](int, const NodeCall& call, const SharedArena& arena, const TensorList& list) {
          return tested.arena ? ArenaBroadcast(call, arena, list, root) : StagedBroadcast(call, list, root);
        },
        [&](int, uint64_t index) { return Input(root, index); });
  }
}

// Parts of different lengths, some of them empty; the last value belongs to no part.
Parts UnevenParts(const Case& tested) {
  Parts parts = EvenParts(tested.values - 1, tested.ranks);
  for (int rank = 0; rank < tested.ranks; ++rank) {
    if (rank % 3 == 1) parts[rank].end = parts[rank].begin;
  }
  return parts;
}

int OwnerOf(const Parts& parts, uint64_t index) {
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (index >= parts[rank].begin && index < parts[rank].end) return static_cast<int>(rank);
  }
  return -1;
}

// Each rank ends with the sum of its part.
TEST(NodeCollectivesTest, ReduceScatter) {
  for (const Case& tested : AllCases()) {
    const Parts parts = UnevenParts(tested);
    Check(
        tested,
        [&](int, const NodeCall& call, const SharedArena& arena, const TensorList& list) {
          return tested.arena ? ArenaReduceScatter(call, arena, list, parts, SumOf(tested.ranks))
                              : StagedReduceScatter(call, list, parts, SumOf(tested.ranks));
        },
        [&](int rank, uint64_t index) { return OwnerOf(parts, index) == rank ? Sum(tested.ranks, index) : -1; });
  }
}

// Whole numbers that float16 can hold, but whose sums it cannot.
float Half(int rank, uint64_t index) { return static_cast<float>(1024 + index % 1000 + rank); }

// Each rank ends with the unrounded sums of its part; the values themselves are unchanged.
TEST(NodeCollectivesTest, WideReduceScatter) {
  for (const Case& tested : AllCases()) {
    SCOPED_TRACE(absl::StrCat(tested.ranks, " ranks, ", tested.values, " values, chunks of ", tested.chunk_bytes));
    const Parts parts = UnevenParts(tested);
    NodeRanks ranks(tested.ranks, {}, {}, tested.values * sizeof(uint16_t));
    RunRanks(tested.ranks, [&](int rank) {
      std::vector<float> wide(tested.values);
      for (uint64_t i = 0; i < tested.values; ++i) wide[i] = Half(rank, i);
      std::vector<uint16_t> own(tested.values), before(tested.values);
      Narrow(DataType::kFloat16, wide, MutableBytesOf(absl::MakeSpan(before)));
      const absl::Span<char> room =
          tested.arena ? ranks.arena(rank).ValuesOf(rank) : MutableBytesOf(absl::MakeSpan(own));
      const uint64_t cut = tested.values / 2 * sizeof(uint16_t);
      const TensorList list(DataType::kFloat16, {room.first(cut), room.subspan(cut)});
      Scatter(BytesOf(absl::MakeConstSpan(before)), list);
      ranks.meeting(rank).Begin(kLong);
      const NodeCall call = {ranks.meeting(rank), Purpose(), tested.chunk_bytes};
      std::vector<float> sums(parts[rank].size());
      ASSERT_EQ(tested.arena ? ArenaWideReduceScatter(call, ranks.arena(rank), list, parts, absl::MakeSpan(sums))
                             : StagedWideReduceScatter(call, list, parts, absl::MakeSpan(sums)),
                absl::OkStatus());
      for (uint64_t i = 0; i < sums.size(); ++i) {
        float wanted = 0;
        for (int other = 0; other < tested.ranks; ++other) wanted += Half(other, parts[rank].begin + i);
        ASSERT_EQ(sums[i], wanted) << "at " << i << " on rank " << rank;
      }
      ASSERT_EQ(room, BytesOf(absl::MakeConstSpan(before)));
    });
  }
}

// Each rank's part reaches all ranks; values outside the parts are unchanged.
TEST(NodeCollectivesTest, AllGather) {
  for (const Case& tested : AllCases()) {
    const Parts parts = UnevenParts(tested);
    Check(
        tested,
        [&](int, const NodeCall& call, const SharedArena& arena, const TensorList& list) {
          return tested.arena ? ArenaAllGather(call, arena, list, parts) : StagedAllGather(call, list, parts);
        },
        [&](int rank, uint64_t index) {
          const int owner = OwnerOf(parts, index);
          return Input(owner < 0 ? rank : owner, index);
        });
  }
}

// Ranks whose values lie in different places of the arena all get an error, and no value is written.
TEST(NodeCollectivesTest, DifferentCallsAreRefusedOnAllRanks) {
  const Case tested = {3, 10, 1024, true};
  NodeRanks ranks(tested.ranks, {}, {}, 1000);
  RunRanks(tested.ranks, [&](int rank) {
    RankList values(ranks, rank, tested);
    ranks.meeting(rank).Begin(kLong);
    NodeCall call = {ranks.meeting(rank), Purpose(), tested.chunk_bytes};
    call.purpose.places = ranks.arena(rank).Places(rank == 1 ? values.list.Slice({0, 9}) : values.list);
    const absl::Status status = ArenaAllReduce(call, ranks.arena(rank), values.list, SumOf(tested.ranks));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("all ranks must call the same operations"));
    EXPECT_EQ(values.at(0), Input(rank, 0));
  });
}

// An arena contains a list only if it contains all of it.
TEST(SharedArenaTest, Contains) {
  NodeRanks ranks(2, {}, {}, 40);
  const absl::Span<char> own = ranks.arena(0).ValuesOf(0);
  std::vector<char> other(8);
  const auto list = [](absl::Span<char> bytes) { return TensorList(DataType::kFloat32, bytes); };
  EXPECT_TRUE(ranks.arena(0).Contains(list(own)));
  EXPECT_TRUE(ranks.arena(0).Contains(list(own.last(4))));
  EXPECT_FALSE(ranks.arena(0).Contains(list(absl::MakeSpan(other))));
  EXPECT_FALSE(ranks.arena(0).Contains(list(ranks.arena(0).ValuesOf(1))));
}

}  // namespace
}  // namespace hooke
