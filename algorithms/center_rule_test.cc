#include "algorithms/center_rule.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "algorithms/rule_facts.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

Contribution From(const std::vector<float>& values) {
  Contribution from;
  from.values = values;
  return from;
}

std::vector<float> Apply(const CenterRule& rule, const std::vector<float>& x, std::vector<float>& center) {
  std::vector<float> answer(x.size(), 99);
  CenterBlock block;
  block.values = absl::MakeSpan(center);
  const Contribution from = From(x);
  rule.Apply({&from, 1}, block, absl::MakeSpan(answer));
  return answer;
}

// The elastic rule pulls the center towards the group by alpha and answers with the difference.
TEST(CenterRuleTest, ElasticMovesTheCenterByAlphaTimesTheDifference) {
  auto rule = MakeCenterRule({RuleName::kElastic, 0.25});
  ASSERT_TRUE(rule.ok()) << rule.status();
  std::vector<float> center = {0, 0, 4};
  EXPECT_EQ(Apply(**rule, {4, -8, 0}, center), (std::vector<float>{1, -2, -1}));
  EXPECT_EQ(center, (std::vector<float>{1, -2, 3}));
  EXPECT_STREQ((*rule)->name(), "elastic");
  EXPECT_FALSE((*rule)->traits().answers_center);
}

// Under the rule none the center becomes what the group sent, and the answer is zeros. alpha is ignored.
TEST(CenterRuleTest, NoneCopiesTheGroup) {
  auto rule = MakeCenterRule({RuleName::kNone, -1});
  ASSERT_TRUE(rule.ok()) << rule.status();
  const std::vector<float> x = {4, -8, 0};
  std::vector<float> center = {1, 2, 3};
  EXPECT_EQ(Apply(**rule, x, center), std::vector<float>(3, 0.0f));
  EXPECT_EQ(center, x);
  EXPECT_STREQ((*rule)->name(), "none");
}

// Every rule accepts empty blocks.
TEST(CenterRuleTest, EmptyBlock) {
  for (uint32_t number = 1; RuleOf(number).has_value(); ++number) {
    CenterRuleOptions options{*RuleOf(number), 0.5};
    options.staleness_bound = 1;
    auto rule = MakeCenterRule(options);
    ASSERT_TRUE(rule.ok()) << rule.status();
    std::vector<float> center;
    EXPECT_TRUE(Apply(**rule, {}, center).empty());
  }
}

// A rule keeps as much state as its optimizer needs; rules without one keep none.
TEST(CenterRuleTest, KeepsTheOptimizersState) {
  CenterRuleOptions options{RuleName::kSync, 0};
  EXPECT_EQ((*MakeCenterRule(options))->traits().state_values, 0u);
  options.optimizer.momentum = 0.9;
  EXPECT_EQ((*MakeCenterRule(options))->traits().state_values, 1u);
  options.optimizer.name = OptimizerName::kAdam;
  EXPECT_EQ((*MakeCenterRule(options))->traits().state_values, 2u);
  EXPECT_EQ((*MakeCenterRule({RuleName::kElastic, 0.5}))->traits().state_values, 0u);
}

// A group that made three times the steps of another counts three times as much. Under sync its sum of gradients is
// larger by itself. Under average its distance is weighted.
TEST(CenterRuleTest, WeighsBySteps) {
  const std::vector<float> slow = {8}, fast_sum = {24}, fast = {4};
  for (const RuleName name : {RuleName::kSync, RuleName::kAverage}) {
    CenterRuleOptions options{name, 0};
    options.schedule.learning_rate = 1;
    Contribution from[2] = {From(slow), From(name == RuleName::kSync ? fast_sum : fast)};
    from[1].group = 1;
    from[1].steps = 3;
    std::vector<float> center(1), answer(1);
    CenterBlock block;
    block.values = absl::MakeSpan(center);
    block.parameters = 1;
    (*MakeCenterRule(options))->Apply(from, block, absl::MakeSpan(answer));
    EXPECT_FLOAT_EQ(center[0], name == RuleName::kSync ? -8 : -5);  // (8 + 24) / 4; (1 x 8 + 3 x 4) / 4.
    EXPECT_EQ(answer, center);
  }
}

// The refusal of a wrong option gives its value.
TEST(CenterRuleTest, RefusesWrongOptions) {
  struct Row {
    CenterRuleOptions options;
    std::string message;
  };
  CenterRuleOptions momentum{RuleName::kDiLoCo, 0};
  momentum.optimizer.momentum = 1;
  CenterRuleOptions rate{RuleName::kSync, 0};
  rate.schedule.learning_rate = 0;
  CenterRuleOptions power{RuleName::kAsync, 0};
  power.staleness_power = 5;
  const Row rows[] = {
      {{RuleName::kElastic, 0}, "elastic rule: alpha is 0; allowed is 0 < alpha < 1"},
      {{RuleName::kElastic, 1}, "elastic rule: alpha is 1; allowed is 0 < alpha < 1"},
      {{RuleName::kElastic, -0.5}, "elastic rule: alpha is -0.5; allowed is 0 < alpha < 1"},
      {{RuleName::kElastic, std::numeric_limits<double>::quiet_NaN()},
       "elastic rule: alpha is nan; allowed is 0 < alpha < 1"},
      {{static_cast<RuleName>(70), 0.5}, "update rule number 70 is not known"},
      {{RuleName::kSsp, 0}, "ssp rule: staleness_bound is 0; allowed is 1 or more"},
      {momentum, "optimizer: momentum is 1; allowed is 0 <= momentum < 1"},
      {rate, "schedule: learning_rate is 0; allowed is learning_rate > 0"},
      {power, "async rule: staleness_power is 5; allowed is 0 to 4"},
  };
  for (const Row& row : rows) {
    const absl::Status status = MakeCenterRule(row.options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.message;
    EXPECT_EQ(std::string(status.message()), row.message);
  }
}

}  // namespace
}  // namespace hooke
