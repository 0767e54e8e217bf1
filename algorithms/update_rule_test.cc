#include "algorithms/update_rule.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

// The elastic rule pulls the center towards the group by alpha and answers with the difference.
TEST(UpdateRuleTest, ElasticMovesTheCenterByAlphaTimesTheDifference) {
  auto rule = MakeUpdateRule({RuleName::kElastic, 0.25});
  ASSERT_TRUE(rule.ok()) << rule.status();
  const std::vector<float> x = {4, -8, 0};
  std::vector<float> center = {0, 0, 4};
  std::vector<float> answer(3, 99);
  (*rule)->Apply({1, x}, absl::MakeSpan(center), absl::MakeSpan(answer));
  EXPECT_EQ(center, (std::vector<float>{1, -2, 3}));
  EXPECT_EQ(answer, (std::vector<float>{1, -2, -1}));
  EXPECT_STREQ((*rule)->name(), "elastic");
}

// Without averaging the center becomes what the group sent and the group is answered with zeros; alpha is of no
// account.
TEST(UpdateRuleTest, NoneCopiesTheGroup) {
  auto rule = MakeUpdateRule({RuleName::kNone, -1});
  ASSERT_TRUE(rule.ok()) << rule.status();
  const std::vector<float> x = {4, -8, 0};
  std::vector<float> center = {1, 2, 3};
  std::vector<float> answer(3, 99);
  (*rule)->Apply({0, x}, absl::MakeSpan(center), absl::MakeSpan(answer));
  EXPECT_EQ(center, x);
  EXPECT_EQ(answer, std::vector<float>(3, 0.0f));
  EXPECT_STREQ((*rule)->name(), "none");
}

// Empty blocks are allowed.
TEST(UpdateRuleTest, EmptyBlock) {
  for (RuleName name : {RuleName::kElastic, RuleName::kNone}) {
    auto rule = MakeUpdateRule({name, 0.5});
    ASSERT_TRUE(rule.ok());
    (*rule)->Apply({}, {}, {});
  }
}

// A wrong option is refused with what it is and what is allowed.
TEST(UpdateRuleTest, RefusesWrongOptions) {
  struct Row {
    UpdateRuleOptions options;
    std::string message;
  };
  const Row rows[] = {
      {{RuleName::kElastic, 0}, "elastic rule: alpha is 0; allowed is 0 < alpha < 1"},
      {{RuleName::kElastic, 1}, "elastic rule: alpha is 1; allowed is 0 < alpha < 1"},
      {{RuleName::kElastic, -0.5}, "elastic rule: alpha is -0.5; allowed is 0 < alpha < 1"},
      {{RuleName::kElastic, std::numeric_limits<double>::quiet_NaN()},
       "elastic rule: alpha is nan; allowed is 0 < alpha < 1"},
      {{static_cast<RuleName>(7), 0.5}, "update rule number 7 is not known; allowed are elastic and none"},
  };
  for (const Row& row : rows) {
    const absl::Status status = MakeUpdateRule(row.options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.message;
    EXPECT_EQ(std::string(status.message()), row.message);
  }
}

}  // namespace
}  // namespace hooke
