// Tests that GapBetween, GapOfDifference and GapOfElasticAnswer all give the distance of the plain formula.

#include "algorithms/center_gap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "algorithms/elastic.h"
#include "algorithms/group_rule.h"

namespace hooke {
namespace {

constexpr double kAlpha = 0.25;

std::vector<float> Wave(size_t values, float phase) {
  std::vector<float> wave(values);
  for (size_t i = 0; i < values; ++i) wave[i] = std::sin(phase + 3 * static_cast<float>(i));
  return wave;
}

// The slow, obvious version.
double Reference(const std::vector<float>& x, const std::vector<float>& center) {
  double difference = 0, length = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference += (double{x[i]} - center[i]) * (double{x[i]} - center[i]);
    length += double{center[i]} * center[i];
  }
  return std::sqrt(difference / length);
}

TEST(CenterGapTest, ByValuesByDifferenceAndByAnElasticAnswer) {
  for (const size_t values : {1u, 7u, 8u, 9u, 1000u, 16384u}) {
    const std::vector<float> x = Wave(values, 1), before = Wave(values, 2);
    const double wanted = Reference(x, before);
    EXPECT_NEAR(RelativeDistance(GapBetween(x, before)).value_or(-1), wanted, 1e-9 * wanted);
    std::vector<float> difference(values), center = before, answer(values);
    for (size_t i = 0; i < values; ++i) difference[i] = before[i] - x[i];
    EXPECT_NEAR(RelativeDistance(GapOfDifference(difference, before)).value_or(-1), wanted, 1e-6 * wanted);
    ElasticExchange(kAlpha, x, absl::MakeSpan(center), absl::MakeSpan(answer));
    EXPECT_NEAR(RelativeDistance(GapOfElasticAnswer(kAlpha, x, answer)).value_or(-1), wanted, 1e-5 * wanted);
  }
}

// The gaps of blocks add up to that of the vector.
TEST(CenterGapTest, AddsUp) {
  const std::vector<float> x = Wave(100, 1), center = Wave(100, 2);
  const absl::Span<const float> xs = x, cs = center;
  CenterGap sum = GapBetween(xs.first(33), cs.first(33));
  sum += GapBetween(xs.subspan(33), cs.subspan(33));
  EXPECT_NEAR(RelativeDistance(sum).value_or(-1), Reference(x, center), 1e-9);
}

TEST(CenterGapTest, NoNumberIsNoDistance) {
  EXPECT_FALSE(RelativeDistance({}).has_value());
  EXPECT_FALSE(RelativeDistance({1, 0}).has_value());
  EXPECT_FALSE(RelativeDistance({1, std::numeric_limits<double>::infinity()}).has_value());
  EXPECT_FALSE(RelativeDistance({std::nan(""), 1}).has_value());
  EXPECT_EQ(RelativeDistance({0, 4}), 0);
  EXPECT_EQ(RelativeDistance({4, 16}), 0.5);
}

// A group that steps locally has a distance, except under rule none. A group whose parameters are the servers' has
// none.
TEST(CenterGapTest, ByRule) {
  constexpr uint64_t kValues = 4;
  const std::vector<float> before(kValues, 2.0f), x(kValues, 3.0f);
  for (const RuleFacts& facts : AllRules()) {
    const std::unique_ptr<GroupRule> rule = MakeGroupRule(facts.rule, {kValues, kValues, {0, kValues}, kAlpha});
    rule->Begin(before);
    const std::vector<Range> ranges = {{0, kValues}};
    const absl::Span<const float> sent = rule->Prepare(x, ranges);
    const std::vector<float> answer(kValues, facts.rule == RuleName::kElastic ? 0.25f : 2.0f);
    const std::optional<CenterGap> gap = rule->Gap({0, sent, answer}, x);
    const bool has_none = facts.rule == RuleName::kNone || !facts.steps_locally;
    EXPECT_EQ(gap.has_value(), !has_none) << facts.name;
    if (has_none) continue;
    EXPECT_EQ(RelativeDistance(*gap), 0.5) << facts.name;
  }
}

}  // namespace
}  // namespace hooke
