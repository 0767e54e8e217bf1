#include "mpi_group/transport/settlement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

// Returns a history of all-reduces numbered from `first` on, one for each element of `values`, which is its number of
// values. The rank entered the last call `in_call` ago.
CallHistory Calls(const std::vector<uint64_t>& values, uint64_t first = 1, absl::Duration in_call = absl::Seconds(30)) {
  CallHistory history;
  for (uint64_t count : values) {
    history.Begin({first++, "all-reduce", count, DataType::kFloat32, ReduceOp::kSum}, kNow - in_call);
  }
  return history;
}

Statement Says(const CallHistory& history, const absl::Status& failure) {
  return FailureStatement(history, failure, kNow);
}

const absl::Status kMismatch = absl::InvalidArgumentError("another call");
const absl::Status kHeard = absl::AbortedError("rank 2 reported a failure");
const absl::Status kMissing = absl::DeadlineExceededError("waited for rank 3 until the deadline");

// The verdict first names the rank that differs, with its call, and then the other ranks with theirs. It does not
// matter how these learned of the failure.
TEST(SettlementTest, DivergenceNamesBothSides) {
  Settlement settlement(4);
  settlement.Hear(3, Says(Calls({5, 1000}, 16), kMismatch));
  settlement.Hear(0, Says(Calls({5, 1000}, 16), kHeard));
  settlement.Hear(1, Says(Calls({5, 1000}, 16), kHeard));
  EXPECT_FALSE(settlement.complete());
  settlement.Hear(2, Says(Calls({5, 999}, 16), kHeard));
  EXPECT_TRUE(settlement.complete());
  EXPECT_EQ(settlement.Verdict(),
            absl::InvalidArgumentError("rank 2 in call 17: all-reduce (sum) of 999 float32, rank 0, 1, 3 in call 17: "
                                       "all-reduce (sum) of 1000 float32; all ranks must call the same operations in "
                                       "the same order"));
}

// A divergence in an earlier call is found, even if later calls have failed with other errors.
TEST(SettlementTest, DivergenceInAnEarlierCall) {
  Settlement settlement(2);
  settlement.Hear(0, Says(Calls({10, 20, 30}), kMissing));
  settlement.Hear(1, Says(Calls({10, 21}), kMissing));
  EXPECT_EQ(settlement.Verdict().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(settlement.Verdict().message()), HasSubstr("rank 1 in call 2: all-reduce (sum) of 21"));
}

// Different call numbers are no divergence: one rank may be done with a call that another is still in.
TEST(SettlementTest, OneRankAheadIsNoDivergence) {
  Settlement settlement(3);
  settlement.Hear(0, Says(Calls({10, 20, 30}), kHeard));
  settlement.Hear(1, Says(Calls({10, 20}), kMissing));
  EXPECT_FALSE(settlement.complete());
  EXPECT_EQ(settlement.Verdict(),
            absl::DeadlineExceededError("waited until the deadline for rank 2, which did not come or got stuck in "
                                        "call 2: all-reduce (sum) of 20 float32 (rank 1 waited)"));
}

// If a rank has left the group, the verdict is UNAVAILABLE and names that rank.
TEST(SettlementTest, LeftRanksAreUnavailable) {
  Settlement settlement(3);
  settlement.HearLeft(1);
  settlement.Hear(0, Says(Calls({10}), absl::UnavailableError("receiving from rank 1, which has left the group")));
  settlement.Hear(2, Says(Calls({10}), kHeard));
  EXPECT_TRUE(settlement.complete());
  EXPECT_EQ(settlement.Verdict(),
            absl::UnavailableError("waited for rank 1, which has left the group, in call 1: all-reduce (sum) of 10 "
                                   "float32 (rank 0 waited)"));
}

// Nobody waits for the statement of a rank whose process has ended. The verdict calls that rank lost, not one that has
// left.
TEST(SettlementTest, LostRanksAreNotWaitedFor) {
  Settlement settlement(3);
  settlement.HearLost(1);
  settlement.Hear(0, Says(Calls({10}), absl::UnavailableError("waited for rank 1, whose process has ended")));
  EXPECT_FALSE(settlement.complete());
  settlement.Hear(2, Says(Calls({10}), kHeard));
  EXPECT_TRUE(settlement.complete());
  EXPECT_EQ(settlement.Verdict(),
            absl::UnavailableError("lost rank 1 in call 1: all-reduce (sum) of 10 float32 (rank 0 waited): rank 0 "
                                   "failed in call 1: all-reduce (sum) of 10 float32: waited for rank 1, whose process "
                                   "has ended"));
}

// A rank that gave up at its deadline may look gone to its neighbour. The verdict names the silent rank that it had
// waited for.
TEST(SettlementTest, SilenceOutranksItsEffects) {
  Settlement settlement(3);
  settlement.Hear(0, Says(Calls({10}), absl::UnavailableError("receiving from rank 1, which has left the group")));
  settlement.Hear(1, Says(Calls({10}), kMissing));
  EXPECT_EQ(settlement.Verdict(),
            absl::DeadlineExceededError("waited until the deadline for rank 2, which did not come or got stuck in "
                                        "call 1: all-reduce (sum) of 10 float32 (rank 0, 1 waited)"));
}

// A rank that comes to the call while others give up on it is named as the missing one.
TEST(SettlementTest, LateRankIsNamed) {
  Settlement settlement(3);
  settlement.Hear(0, Says(Calls({10}), kMissing));
  settlement.Hear(1, Says(Calls({10}, 1, absl::Seconds(25)), kHeard));
  settlement.Hear(2, Says(Calls({10}, 1, absl::Milliseconds(3)), kHeard));
  EXPECT_EQ(settlement.Verdict(),
            absl::DeadlineExceededError("waited until the deadline for rank 2, which came later, in call 1: "
                                        "all-reduce (sum) of 10 float32 (rank 0 waited)"));
}

// A rank that has finished the call and entered the next one is not late.
TEST(SettlementTest, RankAheadIsNotLate) {
  Settlement settlement(2);
  settlement.Hear(0, Says(Calls({10}), absl::DeadlineExceededError("waited for rank 1 until the deadline")));
  settlement.Hear(1, Says(Calls({10, 20}, 1, absl::Milliseconds(3)), kHeard));
  EXPECT_EQ(settlement.Verdict(),
            absl::DeadlineExceededError(
                "rank 0 failed in call 1: all-reduce (sum) of 10 float32: waited for rank 1 until the deadline"));
}

// The verdict is a rank's own failure, rather than the effects of that failure on other ranks.
TEST(SettlementTest, CauseOutranksEffects) {
  Settlement settlement(3);
  settlement.Hear(0, Says(Calls({10}), absl::UnavailableError("receiving from rank 1, which has left the group")));
  settlement.Hear(1, Says(Calls({10}), absl::ResourceExhaustedError("no memory")));
  settlement.Hear(2, Says(Calls({10}), kHeard));
  EXPECT_EQ(settlement.Verdict(),
            absl::ResourceExhaustedError("rank 1 failed in call 1: all-reduce (sum) of 10 float32: no memory"));
}

// A rank that comes after the others have concluded takes their verdict without waiting.
TEST(SettlementTest, VerdictOfOthersIsTaken) {
  Settlement settlement(3);
  settlement.Hear(2, VerdictStatement(absl::DeadlineExceededError("all of it")));
  settlement.Hear(1, VerdictStatement(absl::DeadlineExceededError("a later one")));
  EXPECT_TRUE(settlement.complete());
  EXPECT_EQ(settlement.Verdict(), absl::DeadlineExceededError("all of it"));
}

// One rank gives the verdict: the lowest rank that failed by itself.
TEST(SettlementTest, OneSpeaker) {
  Settlement settlement(3);
  settlement.Hear(0, Says(Calls({10}), kHeard));
  EXPECT_TRUE(settlement.IsSpeaker(0));
  settlement.Hear(2, Says(Calls({10}), kMissing));
  settlement.Hear(1, Says(Calls({10}), kMissing));
  EXPECT_FALSE(settlement.IsSpeaker(0));
  EXPECT_TRUE(settlement.IsSpeaker(1));
  EXPECT_FALSE(settlement.IsSpeaker(2));
}

// FirstReport() names the first rank that has made a statement.
TEST(SettlementTest, FirstReport) {
  Settlement settlement(3);
  EXPECT_EQ(settlement.FirstReport(), absl::OkStatus());
  settlement.Hear(2, Says(Calls({10}), kMismatch));
  EXPECT_EQ(settlement.FirstReport(), absl::AbortedError("rank 2 reported a failure: another call"));
}

// Long texts are cut. Statements that no rank would send are ignored.
TEST(SettlementTest, BadStatementsAreIgnored) {
  const Statement good = Says(Calls({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), absl::DataLossError(std::string(5000, 'x')));
  EXPECT_TRUE(IsValid(good));
  EXPECT_EQ(good.calls, CallHistory::kCalls);
  std::vector<Statement> bad(7, good);
  bad[0].kind = static_cast<Statement::Kind>(3);
  bad[1].kind = static_cast<Statement::Kind>(-1);
  bad[2].code = 0;
  bad[3].code = 99;
  bad[4].calls = CallHistory::kCalls + 1;
  bad[5].message.back() = 'x';
  bad[6].recent[3].text.back() = 'x';
  Settlement settlement(2);
  for (const Statement& statement : bad) settlement.Hear(1, statement);
  EXPECT_FALSE(settlement.any());
  settlement.Hear(1, good);
  EXPECT_EQ(settlement.Verdict().message().size(), good.message.size() - 1 +
                                                       std::string("rank 1 failed in call 10: "
                                                                   "all-reduce (sum) of 10 float32: ")
                                                           .size());
}

// RankList() abbreviates runs of ranks, as in "5-8".
TEST(SettlementTest, RankList) {
  EXPECT_EQ(RankList({3}), "rank 3");
  EXPECT_EQ(RankList({0, 1, 2}), "rank 0, 1, 2");
  EXPECT_EQ(RankList({0, 2, 5, 6, 7, 8, 10}), "rank 0, 2, 5-8, 10");
}

}  // namespace
}  // namespace hooke
