// Rounds without some of the groups, under distance rules: compares the center with formulas in double precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "algorithms/center_rule.h"

namespace hooke {
namespace {

constexpr uint64_t kParameters = 5;
constexpr uint64_t kValues = 7;  // The last two are buffers.
constexpr uint64_t kInterval = 8;
constexpr int kSeeds = 100;
constexpr int kRounds = 40;

struct Case {
  std::string name;
  CenterRuleOptions options;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&cases](std::string name, RuleName rule, double rate, double momentum, bool nesterov) {
    Case c{std::move(name), {}};
    c.options.rule = rule;
    c.options.groups = 4;
    c.options.optimizer.momentum = momentum;
    c.options.optimizer.nesterov = nesterov;
    c.options.schedule.learning_rate = rate;
    cases.push_back(c);
  };
  add("average", RuleName::kAverage, 1, 0, false);
  add("bmuf", RuleName::kBmuf, 1, 0.75, false);
  add("bmuf nesterov", RuleName::kBmuf, 1, 0.75, true);
  add("slowmo", RuleName::kSlowMo, 1, 0.7, false);
  add("diloco", RuleName::kDiLoCo, 0.7, 0.9, true);
  return cases;
}

// A block of the center and the rule that moves it.
class Center {
 public:
  explicit Center(const CenterRuleOptions& options) : rule_(MakeCenterRule(options).value()) {
    state_.resize(kValues * rule_->traits().state_values);
  }

  void Round(const std::vector<Contribution>& from, const WholeRound& whole) {
    CenterBlock block;
    block.values = absl::MakeSpan(values_);
    block.state = absl::MakeSpan(state_);
    block.parameters = kParameters;
    block.update = ++updates_;
    block.whole = whole;
    std::vector<float> answer(kValues);
    rule_->Apply(from, block, absl::MakeSpan(answer));
    EXPECT_EQ(answer, values_);
  }

  const std::vector<float>& values() const { return values_; }
  const std::vector<float>& state() const { return state_; }

 private:
  const std::unique_ptr<CenterRule> rule_;
  std::vector<float> values_ = std::vector<float>(kValues);
  std::vector<float> state_;
  uint64_t updates_ = 0;
};

// The formulas of docs/rules/average.md.
class Reference {
 public:
  explicit Reference(const CenterRuleOptions& options)
      : momentum_(options.optimizer.momentum),
        nesterov_(options.optimizer.nesterov),
        rate_(options.schedule.learning_rate) {}

  void Round(const std::vector<Contribution>& from, const WholeRound& whole) {
    const double contributors = static_cast<double>(from.size());
    double steps = 0;
    for (const Contribution& each : from) steps += static_cast<double>(each.steps);
    const double share = contributors / whole.groups;
    const double w = std::min(1.0, share * (steps / contributors) / static_cast<double>(whole.interval));
    const double push = momentum_ * (1 - std::pow(momentum_, w)) / (1 - momentum_);
    for (uint64_t i = 0; i < kValues; ++i) {
      double d = 0;
      for (const Contribution& each : from) d += share * static_cast<double>(each.steps) * each.values[i] / steps;
      if (i >= kParameters) {
        values_[i] -= d;
        continue;
      }
      values_[i] -= rate_ * (nesterov_ ? (1 + momentum_) * d + momentum_ * push * v_[i] : d + push * v_[i]);
      v_[i] = std::pow(momentum_, w) * v_[i] + d;
    }
  }

  const std::vector<double>& values() const { return values_; }

 private:
  const double momentum_;
  const bool nesterov_;
  const double rate_;
  std::vector<double> values_ = std::vector<double>(kValues);
  std::vector<double> v_ = std::vector<double>(kParameters);
};

// The distances that groups send. Keep it as long as the contributions, which point into it.
struct Sent {
  std::vector<std::vector<float>> values;
  std::vector<Contribution> from;
};

Sent RandomRound(std::mt19937& random, uint32_t groups, uint64_t most_steps) {
  Sent sent;
  std::vector<uint32_t> who;
  for (uint32_t group = 0; group < groups; ++group) {
    if (random() % 2 == 0) who.push_back(group);
  }
  if (who.empty()) who.push_back(random() % groups);
  std::uniform_real_distribution<float> value(-1, 1);
  for (const uint32_t group : who) {
    sent.values.emplace_back();
    for (uint64_t i = 0; i < kValues; ++i) sent.values.back().push_back(value(random));
    Contribution from;
    from.group = group;
    from.steps = 1 + random() % most_steps;
    sent.from.push_back(from);
  }
  for (size_t i = 0; i < sent.from.size(); ++i) sent.from[i].values = sent.values[i];
  return sent;
}

// In each of a hundred random schedules the center follows the formulas, whichever groups are in a round and however
// many steps each made.
TEST(OutOfStepTest, FollowsTheFormulas) {
  for (const Case& c : Cases()) {
    for (uint32_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      std::mt19937 random(seed);
      Center center(c.options);
      Reference reference(c.options);
      for (int round = 0; round < kRounds; ++round) {
        const Sent sent = RandomRound(random, 4, 2 * kInterval);
        WholeRound whole = {static_cast<uint32_t>(sent.from.size()), kInterval};
        whole.groups += random() % (5 - whole.groups);
        center.Round(sent.from, whole);
        reference.Round(sent.from, whole);
        for (uint64_t i = 0; i < kValues; ++i) {
          const double should = reference.values()[i];
          ASSERT_NEAR(center.values()[i], should, 1e-4 * (1 + std::abs(should))) << "round " << round;
        }
      }
    }
  }
}

// If all groups are in every round with at least an interval's steps each, the result is bitwise that of a rule that
// ignores WholeRound.
TEST(OutOfStepTest, InStepNothingChanges) {
  for (const Case& c : Cases()) {
    for (uint32_t seed = 0; seed < kSeeds; ++seed) {
      std::mt19937 random(seed);
      Center center(c.options), plain(c.options);
      for (int round = 0; round < kRounds; ++round) {
        Sent sent = RandomRound(random, 4, kInterval);
        for (Contribution& each : sent.from) each.steps += kInterval - 1;
        center.Round(sent.from, {static_cast<uint32_t>(sent.from.size()), kInterval});
        plain.Round(sent.from, {});
      }
      ASSERT_EQ(center.values(), plain.values()) << c.name << ", seed " << seed;
      ASSERT_EQ(center.state(), plain.state()) << c.name << ", seed " << seed;
    }
  }
}

// Returns the value at which the center comes to rest, after many rounds of zero distances.
double AtRest(Center& center) {
  const std::vector<float> nothing(kValues);
  Contribution from;
  from.steps = kInterval;
  from.values = nothing;
  for (int round = 0; round < 300; ++round) center.Round({from}, {1, kInterval});
  return center.values()[0];
}

// The distances of four groups move the center equally far in the end. They may be in one round, each in its own round,
// or in rounds of two groups over half an interval.
TEST(OutOfStepTest, TheSumDoesNotDependOnTheRounds) {
  const std::vector<float> gone(kValues, 1);
  const std::vector<float> half(kValues, 0.5f);
  constexpr int kIntervals = 5;
  for (const Case& c : Cases()) {
    std::vector<Contribution> from(4);
    for (uint32_t group = 0; group < 4; ++group) {
      from[group].group = group;
      from[group].steps = kInterval;
      from[group].values = gone;
    }
    Center together(c.options), alone(c.options), by_halves(c.options);
    for (int interval = 0; interval < kIntervals; ++interval) {
      together.Round(from, {4, kInterval});
      for (const Contribution& each : from) alone.Round({each}, {4, kInterval});
      // Even intervals make one whole round. Odd ones make half rounds, so each kind follows the other.
      if (interval % 2 == 0) {
        by_halves.Round(from, {4, kInterval});
        continue;
      }
      for (uint32_t pair = 0; pair < 4; ++pair) {
        std::vector<Contribution> two = {from[pair < 2 ? 0 : 2], from[pair < 2 ? 1 : 3]};
        for (Contribution& each : two) {
          each.steps = kInterval / 2;
          each.values = half;
        }
        by_halves.Round(two, {4, kInterval});
      }
    }
    const double should = -kIntervals * c.options.schedule.learning_rate / (1 - c.options.optimizer.momentum);
    for (Center* center : {&together, &alone, &by_halves}) {
      EXPECT_NEAR(AtRest(*center), should, 1e-3) << c.name;
      EXPECT_NEAR(center->values()[kValues - 1], -kIntervals, 1e-4) << c.name << ", a buffer";
    }
  }
}

}  // namespace
}  // namespace hooke
