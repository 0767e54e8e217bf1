// Turns of a shard that wait as queue entries. One thread acts as all groups. Deadlines come in virtual time.

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/test_clock.h"
#include "server/parameters/test_rounds.h"

namespace hooke {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(10);  // The grace window of MakeRoundsRequest.
constexpr absl::Duration kTick = absl::Milliseconds(1);

// One exchange of the first block by each of some groups. All values are 1.
class Turns {
 public:
  explicit Turns(Shard* shard) : shard_(shard) {}

  // Begins the turn of a group. Returns its number, the index of its outcome.
  size_t Begin(uint32_t group, uint64_t sequence = 1, uint32_t incarnation = 1) {
    const size_t number = entries_.size();
    Entry& entry = entries_.emplace_back();
    entry.turn.exchange = {{group, 0, incarnation}, sequence, 0};
    entry.turn.values = entry.values;
    entry.turn.answer = absl::MakeSpan(entry.answer);
    entry.turn.done = [this, &entry](absl::Status status) {
      EXPECT_FALSE(entry.outcome.has_value()) << "a continuation is called once";
      shard_->CopyBlock(0);  // Would hang if a lock were held.
      entry.outcome = std::move(status);
      if (entry.then) entry.then();
    };
    std::optional<absl::Status> status = shard_->Begin(entry.turn);
    if (status.has_value()) entry.outcome = std::move(status);
    return number;
  }
  void Then(size_t turn, std::function<void()> then) { entries_[turn].then = std::move(then); }

  const std::optional<absl::Status>& outcome(size_t turn) const { return entries_[turn].outcome; }
  float answer(size_t turn) const { return entries_[turn].answer[0]; }
  bool waits(size_t turn) const { return !outcome(turn).has_value(); }

 private:
  struct Entry {
    std::vector<float> values = std::vector<float>(4, 1), answer = std::vector<float>(4);
    Turn turn;
    std::optional<absl::Status> outcome;
    std::function<void()> then;
  };

  Shard* const shard_;
  std::deque<Entry> entries_;
};

// A thousand turns wait, and no thread does. The last one closes the round, and all get the same answer.
TEST(ShardTurns, AThousandWaitWithoutAThread) {
  constexpr uint32_t kGroups = 1000;
  const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::SYNC, kGroups));
  Turns turns(shard.get());
  for (uint32_t group = 0; group + 1 < kGroups; ++group) {
    turns.Begin(group);
    ASSERT_TRUE(turns.waits(group));
  }
  turns.Begin(kGroups - 1);
  for (uint32_t group = 0; group < kGroups; ++group) {
    ASSERT_EQ(turns.outcome(group), absl::OkStatus());
    ASSERT_NEAR(turns.answer(group), -kRoundsRate, 1e-4);
  }
  EXPECT_EQ(shard->updates(), 1u);
  // Before LookAgain, until_look may still give the deadline of the round that has ended.
  shard->LookAgain();
  EXPECT_EQ(shard->until_look(), absl::InfiniteDuration());
}

// A turn ends at its deadline and not before. That is the end of the grace window or, if the round has no quorum then,
// 10 s later. until_look tells when to look again.
TEST(ShardTurns, DeadlinesAreInTheShardsTime) {
  struct Case {
    v1::AveragingSpec::Rule rule;
    uint32_t quorum;
    absl::Duration wait;
    absl::StatusCode end;
  };
  const Case cases[] = {
      {v1::AveragingSpec::AVERAGE, 0, kGrace, absl::StatusCode::kOk},
      {v1::AveragingSpec::AVERAGE, 2, kGrace + Shard::kRoundTimeout, absl::StatusCode::kUnavailable},
      {v1::AveragingSpec::SSP, 1, kGrace, absl::StatusCode::kOk},
  };
  for (const Case& c : cases) {
    v1::AttachRequest request = MakeRoundsRequest(c.rule, 2);
    if (c.rule == v1::AveragingSpec::AVERAGE) request.mutable_job()->set_quorum(c.quorum);
    const auto clock = std::make_shared<TestClock>();
    const auto shard = MakeRoundsShard(request, 2, clock);
    EXPECT_EQ(shard->until_look(), absl::InfiniteDuration());
    Turns turns(shard.get());
    const size_t turn = turns.Begin(0, 9);  // Further ahead than the bound.
    ASSERT_TRUE(turns.waits(turn));
    EXPECT_EQ(shard->until_look(), c.wait);
    clock->Advance(c.wait - kTick);
    shard->LookAgain();
    ASSERT_TRUE(turns.waits(turn));
    EXPECT_EQ(shard->until_look(), kTick);
    clock->Advance(kTick);
    EXPECT_EQ(shard->until_look(), absl::ZeroDuration());
    shard->LookAgain();
    ASSERT_FALSE(turns.waits(turn));
    EXPECT_EQ(turns.outcome(turn)->code(), c.end) << *turns.outcome(turn);
    EXPECT_EQ(shard->until_look(), absl::InfiniteDuration());
  }
}

// A group that arrives later may bring the deadline forward: it makes the quorum, so that the grace window begins.
TEST(ShardTurns, AQuorumBringsTheDeadlineForward) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::AVERAGE, 3);
  request.mutable_job()->set_quorum(2);
  const auto clock = std::make_shared<TestClock>();
  const auto shard = MakeRoundsShard(request, 3, clock);
  Turns turns(shard.get());
  const size_t first = turns.Begin(0);
  EXPECT_EQ(shard->until_look(), kGrace + Shard::kRoundTimeout);
  clock->Advance(absl::Seconds(1));
  const size_t second = turns.Begin(1);
  EXPECT_EQ(shard->until_look(), kGrace);
  clock->Advance(kGrace);
  shard->LookAgain();
  EXPECT_EQ(turns.outcome(first), absl::OkStatus());
  EXPECT_EQ(turns.outcome(second), absl::OkStatus());
}

// Turns that wait end when the job ends, when the server stops, and when a later incarnation replaces theirs. Those of
// other groups wait on in the last case.
TEST(ShardTurns, WhoeverWaitsIsToldWhyItNeedNot) {
  for (const auto rule : {v1::AveragingSpec::SYNC, v1::AveragingSpec::SSP}) {
    for (const auto code :
         {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kUnavailable, absl::StatusCode::kAborted}) {
      const auto shard = MakeRoundsShard(MakeRoundsRequest(rule, 3));
      Turns turns(shard.get());
      const size_t turn = turns.Begin(0, 9);
      const size_t other = turns.Begin(1, 9);
      ASSERT_TRUE(turns.waits(turn) && turns.waits(other));
      if (code == absl::StatusCode::kFailedPrecondition) shard->Close();
      if (code == absl::StatusCode::kUnavailable) shard->StopWaiting();
      if (code == absl::StatusCode::kAborted) {
        EXPECT_TRUE(shard->Attach(absl::UnixEpoch(), {0, 0, 2}, kGrace).ok());
      }
      ASSERT_FALSE(turns.waits(turn));
      EXPECT_EQ(turns.outcome(turn)->code(), code) << *turns.outcome(turn);
      EXPECT_EQ(turns.waits(other), code == absl::StatusCode::kAborted);
      shard->StopWaiting();
    }
  }
}

// If a block comes again on another stream, the first turn ends, and the second one takes its place in the round.
TEST(ShardTurns, AnExchangeThatComesAgainCountsOnce) {
  const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::SYNC, 2));
  Turns turns(shard.get());
  const size_t first = turns.Begin(0);
  const size_t again = turns.Begin(0);
  ASSERT_FALSE(turns.waits(first));
  EXPECT_EQ(turns.outcome(first)->code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(turns.waits(again));
  turns.Begin(1);
  EXPECT_EQ(turns.outcome(again), absl::OkStatus());
  EXPECT_EQ(shard->updates(), 1u);
}

// A turn is one exchange of a block by a group. The callback of a turn that waited may begin the group's next turn.
// That turn may close the next round, whose callbacks then begin the turns of the round after that.
TEST(ShardTurns, AContinuationBeginsTheNextTurn) {
  constexpr uint64_t kRounds = 9;  // Before the last step.
  const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::AVERAGE, 2));
  Turns turns(shard.get());
  uint64_t answered = 0;
  std::function<void(uint32_t, uint64_t)> go_on = [&](uint32_t group, uint64_t sequence) {
    while (sequence <= kRounds) {
      const size_t turn = turns.Begin(group, sequence);
      if (turns.waits(turn)) {
        turns.Then(turn, [&, group, sequence] {
          ++answered;
          go_on(group, sequence + 1);
        });
        return;
      }
      ++answered;
      ++sequence;
    }
  };
  go_on(0, 1);
  go_on(1, 1);
  EXPECT_EQ(answered, 2 * kRounds);
  EXPECT_EQ(shard->updates(), kRounds);
}

// A held turn is answered as soon as the group that it waits for has come closer, and sees that group's step.
TEST(ShardTurns, ABoundHoldsFastGroupsBack) {
  const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::SSP, 2));
  Turns turns(shard.get());
  turns.Begin(0, 1);
  turns.Begin(0, 2);
  const size_t fast = turns.Begin(0, 3);
  ASSERT_TRUE(turns.waits(fast));
  EXPECT_EQ(shard->updates(), 3u) << "its own step is applied at once";
  turns.Begin(1, 1);
  ASSERT_EQ(turns.outcome(fast), absl::OkStatus());
  EXPECT_FLOAT_EQ(turns.answer(fast), -4 * kRoundsRate);
}

}  // namespace
}  // namespace hooke
