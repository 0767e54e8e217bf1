#include "mpi_group/node/node_meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>

#include "mpi_group/node/node_ranks.h"
#include "mpi_group/operation.h"
#include "mpi_group/rank_threads.h"

namespace hooke {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(20);

Purpose AllReduceOf(uint64_t values) {
  Purpose purpose;
  purpose.values = values;
  purpose.operation = static_cast<uint8_t>(Operation::kAllReduce);
  return purpose;
}

// All ranks find what each rank brought, meeting after meeting, even if the fast ones run ahead.
TEST(NodeMeetingTest, AllSeeWhatEachBrings) {
  for (int n : {1, 2, 3, 8}) {
    NodeRanks ranks(n);
    RunRanks(n, [&](int rank) {
      NodeMeeting& meeting = ranks.meeting(rank);
      for (uint64_t round = 0; round < 300; ++round) {
        const uint64_t brought = round * 100 + rank;
        std::memcpy(meeting.NextSlot(), &brought, sizeof(brought));
        meeting.Begin(kLong);
        ASSERT_EQ(meeting.Meet(AllReduceOf(round)), absl::OkStatus());
        for (int peer = 0; peer < n; ++peer) {
          uint64_t found = 0;
          std::memcpy(&found, meeting.Slot(peer), sizeof(found));
          ASSERT_EQ(found, round * 100 + peer);
        }
      }
    });
  }
}

// In thousands of meetings of eight ranks no rank passes before the last one has come, whether ranks spin, yield or
// sleep.
TEST(NodeMeetingTest, NobodyPassesBeforeAllHaveCome) {
  constexpr int kRanks = 8;
  constexpr int kRounds = 1000;
  for (const Patience& patience : {PatienceFor(true), PatienceFor(false), Patience{0, 0}}) {
    NodeRanks ranks(kRanks);
    std::atomic<int> arrived{0};
    RunRanks(kRanks, [&](int rank) {
      ranks.meeting(rank).SetPatience(patience);
      ranks.meeting(rank).Begin(kLong);
      for (int round = 1; round <= kRounds; ++round) {
        ++arrived;
        ASSERT_EQ(ranks.meeting(rank).Meet(), absl::OkStatus());
        ASSERT_GE(arrived.load(), round * kRanks);
      }
    });
  }
}

// The error at the deadline names all missing ranks by their numbers in the group.
TEST(NodeMeetingTest, DeadlineNamesTheMissing) {
  NodeRanks ranks(3, {4, 6, 9});
  ranks.meeting(1).Begin(absl::Milliseconds(20));
  const absl::Status status = ranks.meeting(1).Meet();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "waited until the deadline for rank 4, rank 9");
}

// Ranks that wait for a rank that leaves learn it long before the deadline. A rank that leaves after it has arrived
// does not disturb that meeting.
TEST(NodeMeetingTest, LeavingRankIsUnavailable) {
  NodeRanks ranks(2);
  RunRanks(2, [&](int rank) {
    ranks.meeting(rank).Begin(absl::InfiniteDuration());
    ASSERT_EQ(ranks.meeting(rank).Meet(), absl::OkStatus());
    if (rank == 1) {
      ranks.Destroy(1);
      return;
    }
    const absl::Status status = ranks.meeting(0).Meet();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1, which has left the group"));
  });
}

// An error of `interrupted` ends a wait.
TEST(NodeMeetingTest, InterruptedWaitEnds) {
  NodeRanks ranks(2, {}, [] { return absl::AbortedError("rank 7 failed"); });
  ranks.meeting(0).Begin(absl::InfiniteDuration());
  EXPECT_EQ(ranks.meeting(0).Meet(), absl::AbortedError("rank 7 failed"));
}

// A rank that waits for an ended process names it, long before the deadline, even while it sleeps until another rank
// comes. A rank that ended after it had arrived holds up nobody.
TEST(NodeMeetingTest, EndedRankIsUnavailable) {
  NodeRanks ranks(3, {4, 6, 9}, {}, 0, [](int rank) { return rank == 2; });
  // Rank 2 arrives, and does not wait for the others.
  ranks.meeting(2).Begin(absl::ZeroDuration());
  EXPECT_EQ(ranks.meeting(2).Meet().code(), absl::StatusCode::kDeadlineExceeded);
  RunRanks(2, [&](int rank) {
    ranks.meeting(rank).Begin(absl::InfiniteDuration());
    ASSERT_EQ(ranks.meeting(rank).Meet(), absl::OkStatus());
  });
  EXPECT_EQ(ranks.meeting(0).Meet(), absl::UnavailableError("waited for rank 9, whose process has ended"));
}

// Ranks with different purposes all get an error, which says which rank calls what.
TEST(NodeMeetingTest, DifferentPurposesAreAnErrorOnAllRanks) {
  constexpr int kRanks = 3;
  NodeRanks ranks(kRanks);
  RunRanks(kRanks, [&](int rank) {
    ranks.meeting(rank).Begin(kLong);
    const absl::Status status = ranks.meeting(rank).Meet(AllReduceOf(rank == 1 ? 98 : 100));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("all-reduce of 98 float32 values to their sum"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("all-reduce of 100 float32 values"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("all ranks must call the same operations in the same order"));
  });
}

// Only a long wait reads the clock.
TEST(NodeMeetingTest, QuickMeetingsReadNoClock) {
  NodeRanks ranks(1);
  ranks.meeting(0).Begin(kLong);
  EXPECT_EQ(ranks.meeting(0).Meet(), absl::OkStatus());
  EXPECT_EQ(ranks.meeting(0).waiting_since(), absl::InfinitePast());
}

}  // namespace
}  // namespace hooke
