#include "mpi_group/shared_arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "mpi_group/call.h"
#include "mpi_group/rank_threads.h"

namespace hooke {
namespace {

using testing::HasSubstr;

// Arenas of n ranks over memory that the threads share, so that the thread sanitizer sees every access.
class Arenas {
 public:
  Arenas(int n, uint64_t values) : memory_(SharedArena::RegionBytes(values) * n / sizeof(Line)) {
    for (int rank = 0; rank < n; ++rank) {
      arenas_.push_back(std::make_unique<SharedArena>(SharedArena::Layout{
          rank, n, reinterpret_cast<char*>(memory_.data()), SharedArena::RegionBytes(values), values}));
    }
  }

  SharedArena& operator[](int rank) { return *arenas_[rank]; }
  void Destroy(int rank) { arenas_[rank].reset(); }

 private:
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  std::vector<Line> memory_;
  std::vector<std::unique_ptr<SharedArena>> arenas_;
};

absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

// Reductions in place are exact, for several ranks and sizes, call after call, beside the list's other values.
TEST(SharedArenaTest, AllReduceOfPartsOfTheArena) {
  for (int n : {1, 2, 3, 8}) {
    for (uint64_t values : {1, 2, 7, 5000, 70001}) {
      Arenas arenas(n, values + 2);
      RunRanks(n, [&](int rank) {
        const absl::Span<float> own = arenas[rank].ValuesOf(rank);
        for (int round = 0; round < 3; ++round) {
          for (uint64_t i = 0; i < own.size(); ++i) own[i] = static_cast<float>((rank + 1) * (i % 100 + round));
          const TensorList list({own.subspan(1, values / 2), own.subspan(1 + values / 2, values - values / 2)});
          ASSERT_EQ(SharedMemoryAllReduce(arenas[rank], list, ReduceOp::kSum, Soon()), absl::OkStatus());
          for (uint64_t i = 0; i < own.size(); ++i) {
            const int factor = i == 0 || i > values ? rank + 1 : n * (n + 1) / 2;
            ASSERT_EQ(own[i], static_cast<float>(factor * (i % 100 + round))) << i;
          }
        }
      });
    }
  }
}

// Each rank's part reaches all.
TEST(SharedArenaTest, AllGather) {
  constexpr int kRanks = 4;
  Arenas arenas(kRanks, 10);
  const std::vector<ValueRange> parts = {{0, 1}, {1, 1}, {2, 6}, {6, 10}};
  RunRanks(kRanks, [&](int rank) {
    const absl::Span<float> own = arenas[rank].ValuesOf(rank);
    for (float& value : own) value = static_cast<float>(rank);
    ASSERT_EQ(SharedMemoryAllGather(arenas[rank], TensorList(own), parts, Soon()), absl::OkStatus());
    EXPECT_THAT(own, testing::ElementsAre(0, rank, 2, 2, 2, 2, 3, 3, 3, 3));
  });
}

// No rank passes a barrier before the last has come, with more ranks than cores, thousands of times.
TEST(SharedArenaTest, BarrierHoldsWithManyRanks) {
  constexpr int kRanks = 8;
  constexpr int kRounds = 2000;
  Arenas arenas(kRanks, 1);
  std::atomic<int> arrived{0};
  RunRanks(kRanks, [&](int rank) {
    for (int round = 1; round <= kRounds; ++round) {
      ++arrived;
      ASSERT_EQ(arenas[rank].Barrier(Soon()), absl::OkStatus());
      ASSERT_GE(arrived.load(), round * kRanks);
    }
  });
}

// At the deadline all ranks that did not come are named.
TEST(SharedArenaTest, DeadlineNamesTheMissing) {
  Arenas arenas(3, 1);
  const absl::Status status = arenas[1].Barrier(absl::Now() + absl::Milliseconds(20));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "waited until the deadline for rank 0, rank 2");
}

// A rank that leaves wakes the sleepers with its name; who had come before it left is not in their way.
TEST(SharedArenaTest, LeavingRankIsUnavailable) {
  Arenas arenas(2, 1);
  RunRanks(2, [&](int rank) {
    ASSERT_EQ(arenas[rank].Barrier(Soon()), absl::OkStatus());
    if (rank == 1) {
      arenas.Destroy(1);
      return;
    }
    const absl::Status status = arenas[0].Barrier(absl::InfiniteFuture());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1, which has left the group"));
  });
}

// Ranks that reduce different places, or by different operations, all hear of it, and no value is written.
TEST(SharedArenaTest, DifferentCallsAreRefusedOnAllRanks) {
  for (bool other_places : {false, true}) {
    Arenas arenas(3, 10);
    RunRanks(3, [&](int rank) {
      const absl::Span<float> own = arenas[rank].ValuesOf(rank);
      const bool odd_one = rank == 1;
      const TensorList list(own.first(odd_one && other_places ? 9 : 10));
      const ReduceOp op = odd_one && !other_places ? ReduceOp::kMax : ReduceOp::kSum;
      own[0] = static_cast<float>(rank);
      const absl::Status status = SharedMemoryAllReduce(arenas[rank], list, op, Soon());
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("all ranks must call the same operations"));
      EXPECT_EQ(own[0], static_cast<float>(rank));
    });
  }
}

// A list is the arena's only if all of it is.
TEST(SharedArenaTest, Contains) {
  Arenas arenas(2, 10);
  const absl::Span<float> own = arenas[0].ValuesOf(0);
  std::vector<float> other(1);
  EXPECT_TRUE(arenas[0].Contains(TensorList(own)));
  EXPECT_TRUE(arenas[0].Contains(TensorList({own.first(1), own.last(1)})));
  EXPECT_FALSE(arenas[0].Contains(TensorList({own.first(1), absl::MakeSpan(other)})));
  EXPECT_FALSE(arenas[0].Contains(TensorList(arenas[1].ValuesOf(1))));
}

}  // namespace
}  // namespace hooke
