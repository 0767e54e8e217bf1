// The memory that the ranks of a group share: who may pass values of it to which call, and what is said otherwise.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

using testing::HasSubstr;

// The error of a call in the arena names all missing ranks.
TEST(GroupArenaTest, MissingRanksOfAnArenaAreNamed) {
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(4);
  RunRanks(4, [&](int rank) {
    const absl::StatusOr<absl::Span<float>> values = AllocateSharedValues<float>(*groups[rank], 100);
    ASSERT_EQ(values.status(), absl::OkStatus());
    if (rank == 1 || rank == 3) return;
    groups[rank]->SetDeadline(absl::Seconds(2));
    const absl::Status status = groups[rank]->AllReduce(TensorList(*values), ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()), HasSubstr("waited until the deadline for rank 1, 3"));
  });
}

// If values lie in the arena on one rank only, all ranks get an error, and none ends with wrong values. That holds for
// all sizes, and also if a tuning has different chunk sizes for values in the arena and for other values.
TEST(GroupArenaTest, ArenaOnSomeRanksOnlyIsAnErrorOnEveryRank) {
  GroupOptions uneven;
  for (TuningRule::Values kind : {TuningRule::Values::kArena, TuningRule::Values::kPrivate}) {
    TuningRule rule;
    rule.values = kind;
    rule.algorithm = Algorithm::kStaged;
    rule.chunk_bytes = kind == TuningRule::Values::kArena ? 4096 : 65536;
    uneven.tuning.rules.push_back(rule);
  }
  for (const GroupOptions& options : {uneven, GroupOptions()}) {
    for (size_t values : {100, 20000}) {
      const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2, options);
      RunRanks(2, [&](int rank) {
        const absl::StatusOr<absl::Span<float>> arena = AllocateSharedValues<float>(*groups[rank], values);
        ASSERT_EQ(arena.status(), absl::OkStatus());
        std::vector<float> own(values);
        const absl::Status status =
            groups[rank]->AllReduce(TensorList(rank == 0 ? *arena : absl::MakeSpan(own)), ReduceOp::kSum);
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(status.message()), HasSubstr("float32 in shared memory"));
      });
    }
  }
}

// Ranks that pass different places of an arena get an error as well, not wrong values.
TEST(GroupArenaTest, DifferentPlacesAreAnErrorOnEveryRank) {
  for (size_t values : {100, 20000}) {
    const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2);
    RunRanks(2, [&](int rank) {
      const absl::StatusOr<absl::Span<float>> arena = AllocateSharedValues<float>(*groups[rank], values + 1);
      ASSERT_EQ(arena.status(), absl::OkStatus());
      const absl::Status status = groups[rank]->AllReduce(TensorList(arena->subspan(rank, values)), ReduceOp::kSum);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("values that lie elsewhere"));
    });
  }
}

// A clone distinguishes an arena that it was lent from its first own one, even if the values lie at the same offsets.
TEST(GroupArenaTest, LentArenaIsNotAClonesOwn) {
  constexpr size_t kValues = 20000;
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2);
  std::vector<std::unique_ptr<Group>> clones(2);
  RunRanks(2, [&](int rank) {
    const absl::StatusOr<absl::Span<float>> lent = AllocateSharedValues<float>(*groups[rank], kValues);
    ASSERT_EQ(lent.status(), absl::OkStatus());
    absl::StatusOr<std::unique_ptr<Group>> clone = groups[rank]->Clone();
    ASSERT_EQ(clone.status(), absl::OkStatus());
    clones[rank] = *std::move(clone);
    const absl::StatusOr<absl::Span<float>> own = AllocateSharedValues<float>(*clones[rank], kValues);
    ASSERT_EQ(own.status(), absl::OkStatus());
    for (absl::Span<float> values : {*lent, *own}) {
      EXPECT_EQ(clones[rank]->AllReduce(TensorList(values), ReduceOp::kSum), absl::OkStatus());
    }
    EXPECT_EQ(clones[rank]->AllReduce(TensorList(rank == 0 ? *lent : *own), ReduceOp::kSum).code(),
              absl::StatusCode::kInvalidArgument);
  });
  clones.clear();
}

// Allocating no bytes gives an empty span. All ranks refuse more bytes than there can be.
TEST(GroupArenaTest, NothingAndTooMuch) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (int n : {1, 2}) {
    for (uint64_t too_much : {kMost, kMost - 100, kMost / 2}) {
      const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(n);
      RunRanks(n, [&](int rank) {
        const absl::StatusOr<absl::Span<char>> nothing = groups[rank]->AllocateShared(0);
        ASSERT_EQ(nothing.status(), absl::OkStatus());
        EXPECT_TRUE(nothing->empty());
        EXPECT_EQ(groups[rank]->Barrier(), absl::OkStatus());
        EXPECT_EQ(AllocateSharedValues<double>(*groups[rank], too_much).status().code(),
                  absl::StatusCode::kResourceExhausted);
      });
    }
  }
}

}  // namespace
}  // namespace hooke
