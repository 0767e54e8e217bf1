#include "algorithms/rule_facts.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hooke {
namespace {

// Each rule is in the table once, under its own number and name.
TEST(RuleFactsTest, FindsEachRule) {
  std::set<std::string> names;
  uint32_t number = 0;
  for (const RuleFacts& facts : AllRules()) {
    EXPECT_EQ(RuleOf(++number), facts.rule);
    EXPECT_EQ(&FactsOf(facts.rule), &facts);
    EXPECT_TRUE(names.insert(facts.name).second) << facts.name;
  }
  EXPECT_EQ(RuleOf(0), std::nullopt);
  EXPECT_EQ(RuleOf(number + 1), std::nullopt);
}

// Tests one rule of each kind: what the functions that read the table of facts return for it.
TEST(RuleFactsTest, TellsWhatFollows) {
  struct Row {
    RuleName rule;
    bool waits, in_rounds, answers_center, from_last_answer, gradients, mean;
  };
  const Row rows[] = {
      {RuleName::kElastic, false, false, false, false, false, false},
      {RuleName::kNone, false, false, false, false, false, false},
      {RuleName::kSync, true, true, true, false, true, false},
      {RuleName::kAsync, false, false, true, false, true, false},
      {RuleName::kSsp, true, false, true, false, true, false},
      {RuleName::kDownpour, false, false, true, true, true, false},
      {RuleName::kAverage, true, true, true, true, false, true},
      {RuleName::kBmuf, true, true, true, true, false, false},
      {RuleName::kDiLoCo, true, true, true, true, false, false},
  };
  for (const Row& row : rows) {
    const char* const name = FactsOf(row.rule).name;
    EXPECT_EQ(WaitsForOthers(row.rule), row.waits) << name;
    EXPECT_EQ(InRounds(row.rule), row.in_rounds) << name;
    EXPECT_EQ(AnswersWithCenter(row.rule), row.answers_center) << name;
    EXPECT_EQ(SendsFromLastAnswer(row.rule), row.from_last_answer) << name;
    EXPECT_EQ(SendsGradients(row.rule), row.gradients) << name;
    EXPECT_EQ(CenterIsMean(row.rule), row.mean) << name;
  }
}

}  // namespace
}  // namespace hooke
