// Tests how RoundTurns and SingleTurns serve the turns of one block. Time stands still, and there are no threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "server/parameters/round_turns.h"
#include "server/parameters/single_turns.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_clock.h"
#include "server/parameters/test_rounds.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr absl::Duration kGrace = absl::Seconds(10);  // As in MakeRoundsRequest.

// The parts of a shard with one block of 4 values, which are 0. Two groups have attached.
class TurnsTest : public ::testing::Test {
 protected:
  explicit TurnsTest(v1::AveragingSpec::Rule rule) : TurnsTest(MakeRoundsRequest(rule, 2, 4)) {}
  explicit TurnsTest(const v1::AttachRequest& request) {
    ShardPlan plan = PlanShard(request, 4).value();
    std::unique_ptr<CenterRule> center_rule = MakeCenterRule(plan.rule.options).value();
    parts_ = std::make_unique<ShardParts>(std::move(plan), std::move(center_rule), clock_);
    at_.block = Block({0, 4, parts_->plan.BlockParameters(0)}, 2, 0);
    at_.block.MakeValues();
    at_.block.MakeState(parts_->plan.rule.traits.state_values);
    for (uint32_t group = 0; group < 2; ++group) {
      EXPECT_TRUE(parts_->attachments.Attach(clock_->Now(), {group, 0, 1}, absl::Seconds(20)).ok());
      absl::MutexLock lock(&parts_->book_mutex);
      parts_->book.roster().Enter(group, 0);
      parts_->book.Begin(group, {1, 0});
    }
  }

  // A turn and its memory.
  struct Sent {
    std::vector<float> values;
    std::vector<float> answer = std::vector<float>(4);
    Turn turn;
  };
  // Returns a turn of a group, all of whose values are `value`.
  Sent& MakeTurn(uint32_t group, uint64_t sequence, float value) {
    Sent& sent = sent_.emplace_back();
    sent.values.assign(4, value);
    sent.turn.exchange = {{group, 0, 1}, sequence, 0};
    sent.turn.values = sent.values;
    sent.turn.answer = absl::MakeSpan(sent.answer);
    EXPECT_EQ(sent.turn.Prepare(parts_->plan), absl::OkStatus());
    return sent;
  }

  std::vector<Turn*> waiting() {
    absl::MutexLock lock(&at_.mutex);
    return at_.waiting;
  }
  absl::Time look_at() {
    absl::MutexLock lock(&at_.mutex);
    return at_.look_at;
  }

  const std::shared_ptr<TestClock> clock_ = std::make_shared<TestClock>();
  std::unique_ptr<ShardParts> parts_;
  std::list<Sent> sent_;  // Outlives at_, which points into it.
  BlockTurns at_;
  TurnEnds ends_;
};

class RoundTurnsTest : public TurnsTest {
 protected:
  RoundTurnsTest() : TurnsTest(v1::AveragingSpec::SYNC) {}
  std::optional<absl::Status> Apply(Sent& sent) {
    absl::MutexLock lock(&at_.mutex);
    return rounds_.Apply(sent.turn, at_, ends_);
  }
  void Look() {
    absl::MutexLock lock(&at_.mutex);
    rounds_.Look(clock_->Now(), at_, ends_);
  }

  RoundTurns rounds_{parts_.get()};
};

// The last group of a round applies it. All turns of the round get the new center, and none waits any longer.
TEST_F(RoundTurnsTest, TheLastGroupAppliesTheRound) {
  Sent& first = MakeTurn(0, 1, 1);
  EXPECT_EQ(Apply(first), std::nullopt);
  EXPECT_THAT(waiting(), ElementsAre(&first.turn));
  EXPECT_EQ(parts_->updates, 0u);
  Sent& last = MakeTurn(1, 1, 3);
  EXPECT_EQ(Apply(last), absl::OkStatus());
  EXPECT_THAT(ends_.turns, ElementsAre(std::make_pair(&first.turn, absl::OkStatus())));
  EXPECT_FALSE(ends_.changes_groups);
  EXPECT_EQ(last.answer[0], -2 * kRoundsRate);
  EXPECT_EQ(first.answer, last.answer);
  EXPECT_EQ(parts_->updates, 1u);
  EXPECT_THAT(waiting(), SizeIs(0));
  EXPECT_EQ(look_at(), absl::InfiniteFuture());
}

// After the grace window the round closes without the missing group, which may end waits at other blocks.
TEST_F(RoundTurnsTest, ClosesWithoutAMissingGroup) {
  Sent& sent = MakeTurn(0, 1, 1);
  EXPECT_EQ(Apply(sent), std::nullopt);
  EXPECT_EQ(parts_->looks.next(), clock_->Now() + kGrace);
  Look();
  EXPECT_THAT(ends_.turns, SizeIs(0));
  clock_->Advance(kGrace);
  Look();
  EXPECT_THAT(ends_.turns, ElementsAre(std::make_pair(&sent.turn, absl::OkStatus())));
  EXPECT_TRUE(ends_.changes_groups);
  EXPECT_EQ(sent.answer[0], -kRoundsRate);
}

// The same exchange on another stream takes the place of the first, which ends.
TEST_F(RoundTurnsTest, AnotherStreamTakesThePlace) {
  Sent& broken = MakeTurn(0, 1, 1);
  Sent& again = MakeTurn(0, 1, 1);
  EXPECT_EQ(Apply(broken), std::nullopt);
  EXPECT_EQ(Apply(again), std::nullopt);
  ASSERT_THAT(ends_.turns, SizeIs(1));
  EXPECT_EQ(ends_.turns[0].first, &broken.turn);
  EXPECT_EQ(ends_.turns[0].second.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(waiting(), ElementsAre(&again.turn));
}

// A turn that must not wait ends, and its contribution leaves the round.
TEST_F(RoundTurnsTest, EndsWhenTheServerStops) {
  EXPECT_EQ(Apply(MakeTurn(0, 1, 1)), std::nullopt);
  parts_->attachments.StopWaiting();
  Look();
  ASSERT_THAT(ends_.turns, SizeIs(1));
  EXPECT_EQ(ends_.turns[0].second.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(waiting(), SizeIs(0));
  EXPECT_EQ(Apply(MakeTurn(1, 1, 3))->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(parts_->updates, 0u);
}

class SingleTurnsTest : public TurnsTest {
 protected:
  using TurnsTest::TurnsTest;
  std::optional<absl::Status> Apply(Sent& sent) {
    absl::MutexLock lock(&at_.mutex);
    return singles_.Apply(sent.turn, at_, ends_);
  }
  std::optional<absl::Status> Repeat(Sent& sent) {
    absl::MutexLock lock(&at_.mutex);
    return singles_.Repeat(sent.turn, at_, ends_);
  }
  void Look() {
    absl::MutexLock lock(&at_.mutex);
    singles_.Look(clock_->Now(), at_, ends_);
  }

  SingleTurns singles_{parts_.get()};
};

class ElasticTurnsTest : public SingleTurnsTest {
 protected:
  ElasticTurnsTest() : SingleTurnsTest(MakeRequest()) {}
  static v1::AttachRequest MakeRequest() {
    TestCenter center;
    center.values = 4;
    return MakeAttachRequest(center);
  }
};

// A repeat gets the kept answer and changes nothing. Zeros take the place of an answer that is not kept any more.
TEST_F(ElasticTurnsTest, RepeatsTheKeptAnswer) {
  Sent& sent = MakeTurn(0, 1, 4);
  EXPECT_EQ(Apply(sent), absl::OkStatus());
  EXPECT_THAT(sent.answer, Each(1.0f));  // alpha is 0.25.
  EXPECT_EQ(Apply(MakeTurn(1, 1, 0)), absl::OkStatus());
  Sent& again = MakeTurn(0, 1, 4);
  EXPECT_EQ(Repeat(again), absl::OkStatus());
  EXPECT_EQ(again.answer, sent.answer);
  EXPECT_EQ(parts_->updates, 2u);
  Sent& unknown = MakeTurn(0, 2, 4);
  unknown.answer.assign(4, 7);
  EXPECT_EQ(Repeat(unknown), absl::OkStatus());
  EXPECT_THAT(unknown.answer, Each(0.0f));
}

class BoundedTurnsTest : public SingleTurnsTest {
 protected:
  BoundedTurnsTest() : SingleTurnsTest(v1::AveragingSpec::SSP) {}  // The bound is 2.
};

// A group that is too far ahead waits for its answer until the other group has come closer. Its values are applied at
// once.
TEST_F(BoundedTurnsTest, WaitsForASlowerGroup) {
  EXPECT_EQ(Apply(MakeTurn(0, 2, 1)), absl::OkStatus());
  Sent& ahead = MakeTurn(0, 3, 1);
  EXPECT_EQ(Apply(ahead), std::nullopt);
  EXPECT_EQ(parts_->updates, 2u);
  EXPECT_EQ(parts_->looks.next(), clock_->Now() + kGrace);
  Look();
  EXPECT_THAT(ends_.turns, SizeIs(0));
  Sent& slow = MakeTurn(1, 1, 1);
  EXPECT_EQ(Apply(slow), absl::OkStatus());
  EXPECT_THAT(ends_.turns, ElementsAre(std::make_pair(&ahead.turn, absl::OkStatus())));
  EXPECT_EQ(ahead.answer, slow.answer);
  EXPECT_THAT(waiting(), SizeIs(0));
}

// After the grace window neither this turn nor a later one waits for the slower group.
TEST_F(BoundedTurnsTest, StopsWaitingForASilentGroup) {
  Sent& ahead = MakeTurn(0, 3, 1);
  EXPECT_EQ(Apply(ahead), std::nullopt);
  clock_->Advance(kGrace);
  Look();
  EXPECT_THAT(ends_.turns, ElementsAre(std::make_pair(&ahead.turn, absl::OkStatus())));
  EXPECT_EQ(Apply(MakeTurn(0, 9, 1)), absl::OkStatus());
}

// A turn that waits ends with an error when the server stops.
TEST_F(BoundedTurnsTest, EndsWhenTheServerStops) {
  EXPECT_EQ(Apply(MakeTurn(0, 3, 1)), std::nullopt);
  parts_->attachments.StopWaiting();
  Look();
  ASSERT_THAT(ends_.turns, SizeIs(1));
  EXPECT_EQ(ends_.turns[0].second.code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hooke
