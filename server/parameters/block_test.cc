#include "server/parameters/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kMost = std::numeric_limits<float>::max();

// Returns a rule with which an exchange moves the center halfway to the group.
std::unique_ptr<CenterRule> Elastic() {
  CenterRuleOptions options;
  options.alpha = 0.5;
  return MakeCenterRule(options).value();
}

// Returns a rule that steps the center by each gradient, with momentum.
std::unique_ptr<CenterRule> Momentum() {
  CenterRuleOptions options;
  options.rule = RuleName::kAsync;
  options.optimizer.momentum = 0.5;
  options.schedule.learning_rate = 1;
  return MakeCenterRule(options).value();
}

// Returns a block of three zeros, from value 8 on. Three groups are at step 4.
Block MakeBlock(uint32_t state_values = 0) {
  Block block({8, 3, 3}, 3, 4);
  block.MakeValues();
  block.MakeState(state_values);
  return block;
}

// Applies one contribution of a group.
absl::Status Apply(Block& block, const CenterRule& rule, uint32_t group, const std::vector<float>& values,
                   std::vector<float>& answer) {
  Contribution from;
  from.group = group;
  from.values = values;
  answer.resize(values.size());
  return block.Apply(rule, {{&from, 1}, {1, 1}, 0, false, "job-1"}, absl::MakeSpan(answer));
}

// A new block has zeros, no updates, and every group at the first step of the generation.
TEST(Block, BeginsWithZeros) {
  const BlockCopy copy = MakeBlock(2).Copy();
  EXPECT_THAT(copy.values, ElementsAre(0, 0, 0));
  EXPECT_THAT(copy.state, ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(copy.applied, Each(ExchangeId{0, 4}));
  EXPECT_EQ(copy.updates, 0u);
}

// Apply changes the values, writes the rule's answer and counts an update. It does not record the group's exchange as
// applied: NoteApplied does.
TEST(Block, AppliesARule) {
  Block block = MakeBlock();
  std::vector<float> answer;
  ASSERT_EQ(Apply(block, *Elastic(), 1, {2, 4, -6}, answer), absl::OkStatus());
  EXPECT_THAT(block.Copy().values, ElementsAre(1, 2, -3));
  EXPECT_THAT(answer, ElementsAre(1, 2, -3));
  EXPECT_EQ(block.updates(), 1u);
  EXPECT_EQ(block.applied(1), (ExchangeId{0, 4}));
  block.NoteApplied(1, {1, 5});
  EXPECT_EQ(block.applied(1), (ExchangeId{1, 5}));
  EXPECT_EQ(block.applied(0), (ExchangeId{0, 4}));
}

// A change whose result is infinite leaves values, state and count as they were, and the message says where and why.
TEST(Block, StaysAsItWasIfTheResultIsInfinite) {
  const std::unique_ptr<CenterRule> rule = Momentum();
  Block block = MakeBlock(rule->traits().state_values);
  std::vector<float> answer;
  ASSERT_EQ(Apply(block, *rule, 0, {1, -kMost, 1}, answer), absl::OkStatus());
  const BlockCopy before = block.Copy();
  const absl::Status status = Apply(block, *rule, 2, {1, -kMost, 1}, answer);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("group 2 sent would make, in the center of job job-1, value 9 inf"));
  EXPECT_EQ(block.Copy().values, before.values);
  EXPECT_EQ(block.Copy().state, before.state);
  EXPECT_EQ(block.updates(), 1u);
}

// A group's contribution is stale by the updates since its last answer. It is not stale if the incarnation is new here.
TEST(Block, CountsStaleness) {
  Block block = MakeBlock();
  std::vector<float> answer;
  for (const uint32_t group : {0, 1, 1}) {
    ASSERT_EQ(Apply(block, *Elastic(), group, {1, 1, 1}, answer), absl::OkStatus());
    block.NoteApplied(group, {1, 5});
    if (group == 0) block.Answer(0, absl::MakeSpan(answer));
  }
  EXPECT_EQ(block.Staleness(0, 1), 2u);
  EXPECT_EQ(block.Staleness(0, 2), 0u);
  EXPECT_EQ(block.Staleness(1, 1), 3u);
  EXPECT_EQ(block.Staleness(2, 1), 0u);
  block.NoteSeen(0);
  EXPECT_EQ(block.Staleness(0, 1), 0u);
  EXPECT_THAT(block.seen(), ElementsAre(3, 0, 0));
}

// Answer copies the values.
TEST(Block, AnswersWithItsValues) {
  Block block = MakeBlock();
  block.WriteInitial(std::vector<float>{1, 2, 3});
  std::vector<float> answer(3);
  block.Answer(1, absl::MakeSpan(answer));
  EXPECT_THAT(answer, ElementsAre(1, 2, 3));
}

// Exchanges of a group come in the order of incarnation and sequence.
TEST(Block, ChecksTheOrderOfExchanges) {
  Block block = MakeBlock();
  block.NoteApplied(1, {2, 7});
  struct Case {
    ExchangeId exchange;
    absl::StatusCode code;
    std::string message;
  };
  const Case cases[] = {
      {{2, 8}, absl::StatusCode::kOk, ""},
      {{3, 1}, absl::StatusCode::kOk, ""},
      {{2, 6}, absl::StatusCode::kInvalidArgument, "sequence 6 of group 1 comes after sequence 7 at value 8"},
      {{1, 9}, absl::StatusCode::kAborted, "start 1 of group 1 has been replaced by start 2"},
  };
  for (const Case& c : cases) {
    const absl::Status status = block.CheckNext(1, c.exchange);
    EXPECT_EQ(status.code(), c.code) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  EXPECT_EQ(block.CheckNext(0, {1, 5}), absl::OkStatus());
}

// A new incarnation may write the block back, again and again until its first exchange. Its group has then seen the
// block.
TEST(Block, IsWrittenBack) {
  Block block = MakeBlock();
  block.NoteApplied(0, {1, 9});
  for (int times = 1; times <= 2; ++times) {
    ASSERT_EQ(block.WriteBack(0, {2, 6}, std::vector<float>{1, 2, 3}), absl::OkStatus());
    EXPECT_EQ(block.applied(0), (ExchangeId{2, 6}));
    EXPECT_EQ(block.updates(), static_cast<uint64_t>(times));
    EXPECT_EQ(block.Staleness(0, 2), 0u);
  }
  EXPECT_EQ(block.WriteBack(0, {1, 9}, std::vector<float>{4, 5, 6}).code(), absl::StatusCode::kAborted);
  block.NoteApplied(0, {2, 7});
  EXPECT_EQ(block.WriteBack(0, {2, 6}, std::vector<float>{4, 5, 6}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(block.Copy().values, ElementsAre(1, 2, 3));
  EXPECT_EQ(block.updates(), 2u);
}

// A restored block equals the copied one, and no group counts as late.
TEST(Block, IsRestoredFromACopy) {
  const std::unique_ptr<CenterRule> rule = Momentum();
  Block block = MakeBlock(rule->traits().state_values);
  std::vector<float> answer;
  ASSERT_EQ(Apply(block, *rule, 0, {1, 2, 3}, answer), absl::OkStatus());
  block.NoteApplied(0, {1, 5});
  Block restored({8, 3, 3}, 3, 4);
  restored.Restore(block.Copy());
  EXPECT_EQ(restored.Copy().values, block.Copy().values);
  EXPECT_EQ(restored.Copy().state, block.Copy().state);
  EXPECT_EQ(restored.applied(0), (ExchangeId{1, 5}));
  EXPECT_EQ(restored.updates(), 1u);
  EXPECT_EQ(block.Staleness(0, 1), 1u);
  EXPECT_EQ(restored.Staleness(0, 1), 0u);
}

// A block of a later generation gets the memory of the earlier one's, and begins anew what belongs to groups. A state
// of another size begins with zeros.
TEST(Block, GoesOnWithOtherGroups) {
  const std::unique_ptr<CenterRule> rule = Momentum();
  for (const bool with_state : {true, false}) {
    Block before = MakeBlock(rule->traits().state_values);
    std::vector<float> answer;
    ASSERT_EQ(Apply(before, *rule, 0, {1, 2, 3}, answer), absl::OkStatus());
    before.NoteApplied(0, {1, 5});
    const BlockCopy copy = before.Copy();
    Block after({8, 3, 3}, 2, 6);
    if (!with_state) after.MakeState(2);
    after.GoOn(before.HandOver(), with_state);
    EXPECT_TRUE(before.Copy().values.empty());
    EXPECT_EQ(before.applied(0), (ExchangeId{1, 5}));
    EXPECT_EQ(after.Copy().values, copy.values);
    EXPECT_EQ(after.Copy().state, with_state ? copy.state : std::vector<float>(6));
    EXPECT_THAT(after.Copy().applied, ElementsAre(ExchangeId{0, 6}, ExchangeId{0, 6}));
    EXPECT_THAT(after.seen(), ElementsAre(1, 1));
    EXPECT_EQ(after.updates(), 1u);
  }
}

// The message names the first value that is not finite, and the group.
TEST(CheckFinite, NamesTheValue) {
  EXPECT_EQ(CheckFinite(1, 8, {1, kMost}), absl::OkStatus());
  const absl::Status status = CheckFinite(1, 8, {1, kMost, std::nanf(""), 2});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("group 1 sent nan for value 10"));
}

}  // namespace
}  // namespace hooke
