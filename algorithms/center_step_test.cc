// Tests both halves of the rules that step the center with an optimizer against formulas in double precision.

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "algorithms/center_rule.h"
#include "algorithms/group_rule.h"
#include "algorithms/round.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

constexpr uint64_t kParameters = 5;
constexpr uint64_t kValues = 7;  // The last two are buffers.
constexpr double kLocalRate = 0.1;
constexpr uint64_t kStepsPerEpoch = 10;
constexpr double kEpochs = 20;
constexpr int kSeeds = 100;
constexpr int kExchanges = 30;

// The formulas of docs/rules/: what the groups send, and how that moves the center.
enum class Formula {
  kSync,       // Gradients: the mean of all, in rounds.
  kAsync,      // Gradients: one group's mean.
  kDownpour,   // Gradients: one group's sum.
  kDistances,  // Distances: the mean of all, weighted by steps times samples, in rounds.
  kSlowMo,     // kDistances, divided by the schedule's factor.
};

struct Case {
  std::string name;
  Formula formula = Formula::kSync;
  bool cosine = false;  // True: the learning rate falls along a cosine to a tenth over kEpochs.
  CenterRuleOptions options = {};
};

// The slow, obvious optimizer of the center: one parameter at a time, in double.
class ReferenceOptimizer {
 public:
  explicit ReferenceOptimizer(const OptimizerOptions& options) : o_(options) {}

  void Step(double rate, const std::vector<double>& gradient, std::vector<double>& center) {
    ++steps_;
    for (uint64_t i = 0; i < kParameters; ++i) {
      double& p = center[i];
      double g = gradient[i];
      if (o_.name == OptimizerName::kSgd) {
        g += o_.weight_decay * p;
        first_[i] = o_.momentum * first_[i] + g;
        if (o_.momentum > 0) g = o_.nesterov ? g + o_.momentum * first_[i] : first_[i];
        p -= rate * g;
        continue;
      }
      if (o_.name == OptimizerName::kAdamW) p *= 1 - rate * o_.weight_decay;
      if (o_.name == OptimizerName::kAdam) g += o_.weight_decay * p;
      first_[i] = o_.beta1 * first_[i] + (1 - o_.beta1) * g;
      second_[i] = o_.beta2 * second_[i] + (1 - o_.beta2) * g * g;
      const double m = first_[i] / (1 - std::pow(o_.beta1, steps_));
      const double v = second_[i] / (1 - std::pow(o_.beta2, steps_));
      p -= rate * m / (std::sqrt(v) + o_.epsilon);
    }
  }

 private:
  const OptimizerOptions o_;
  int steps_ = 0;
  std::vector<double> first_ = std::vector<double>(kParameters);
  std::vector<double> second_ = std::vector<double>(kParameters);
};

// A group: its actual values, and the values it should have.
struct TestGroup {
  std::unique_ptr<GroupRule> rule;
  std::vector<float> x;
  std::vector<double> x_should;
  std::vector<double> sum = std::vector<double>(kParameters);  // The gradients not yet answered.
  std::vector<double> anchor;
  uint64_t steps = 0;       // Steps so far.
  uint64_t steps_sent = 0;  // Steps when it last sent.
  double samples = 1;       // The samples of each of its steps, which are the weight of its contributions.
  uint64_t seen = 0;        // The version of the center in the group's last answer.
  // The last message and its answer, which is the center at that time. `waiting`: the group has not taken the answer
  // yet.
  bool waiting = false;
  std::vector<float> sent;
  std::vector<double> sent_should;
  std::vector<float> answer;
  std::vector<double> answer_should;
};

class Simulation {
 public:
  Simulation(const Case& c, uint32_t seed)
      : case_(c),
        options_(case_.options),
        random_(seed),
        rule_(MakeCenterRule(c.options).value()),
        reference_(c.options.optimizer) {
    for (uint64_t i = 0; i < kValues; ++i) center_.push_back(Uniform());
    center_should_.assign(center_.begin(), center_.end());
    state_.resize(kValues * rule_->traits().state_values);
    groups_.resize(options_.groups);
    for (TestGroup& group : groups_) {
      group.samples = 16 * (Below(4) + 1);
      group.rule = MakeGroupRule(options_.rule, {kValues, kParameters, {0, kValues}});
      group.x = center_;
      group.rule->Begin(group.x);
      group.x_should = group.anchor = center_should_;
    }
  }

  // Groups train and exchange in random order. Some groups are left out, some send twice, and some take their answer
  // late.
  void Run() {
    for (int exchange = 0; exchange < kExchanges; ++exchange) {
      std::vector<uint32_t> who;
      for (uint32_t group = 0; group < groups_.size(); ++group) {
        Train(groups_[group]);
        if (Below(5) > 0) {
          who.push_back(group);  // Send takes the answer the group still waits for.
        } else if (groups_[group].waiting) {
          TakeAnswer(groups_[group]);
        }
      }
      std::shuffle(who.begin(), who.end(), random_);
      if (in_rounds()) {
        if (!who.empty()) ExchangeTogether(who);
      } else {
        for (const uint32_t group : who) ExchangeAlone(group);
      }
      Check();
    }
  }

 private:
  float Uniform() { return std::uniform_real_distribution<float>(-1, 1)(random_); }
  uint32_t Below(uint32_t end) { return std::uniform_int_distribution<uint32_t>(0, end - 1)(random_); }

  void Train(TestGroup& group) {
    for (uint32_t step = Below(3) + 1; step > 0; --step) {
      ++group.steps;
      std::vector<float> gradient;
      for (uint64_t i = 0; i < kParameters; ++i) {
        gradient.push_back(Uniform());
        group.sum[i] += gradient[i];
        if (!group.rule->StepsLocally()) continue;
        group.x[i] -= static_cast<float>(kLocalRate) * gradient[i];
        group.x_should[i] -= kLocalRate * gradient[i];
      }
      for (uint64_t i = kParameters; i < kValues; ++i) {
        const float change = Uniform();
        group.x[i] += change;
        group.x_should[i] += change;
      }
      group.rule->AddGradient(gradient);
    }
  }

  Contribution Send(uint32_t index) {
    TestGroup& group = groups_[index];
    const absl::Span<const float> sent = group.rule->Prepare(group.x, {Range{0, kValues}});
    // The group takes the answer to its previous exchange before it sends, so it sends only what is not yet answered. A
    // group may send the rule's own values or a copy of them; both must hold the same values.
    std::vector<float> copy(sent.begin(), sent.end());
    const bool copies = Below(2) == 0;
    if (group.waiting) {
      group.rule->CorrectCopy({0, group.sent, group.answer}, absl::MakeSpan(copy));
      TakeAnswer(group);
    }
    if (!copies) copy.assign(sent.begin(), sent.end());
    group.sent = std::move(copy);
    group.sent_should.resize(kValues);
    for (uint64_t i = 0; i < kValues; ++i) {
      const bool gradient = i < kParameters && !distances();
      group.sent_should[i] = gradient ? group.sum[i] : group.anchor[i] - group.x_should[i];
    }
    Contribution from;
    from.group = index;
    from.sequence = group.steps;
    from.steps = group.steps - group.steps_sent;
    from.samples = group.samples;
    from.staleness = version_ - group.seen;
    from.values = group.sent;
    return from;
  }

  // The group takes the answer at once, or after more steps.
  void Answer(uint32_t index, const std::vector<float>& answer) {
    TestGroup& group = groups_[index];
    group.steps_sent = group.steps;
    group.seen = version_;
    group.answer = answer;
    group.answer_should = center_should_;
    group.waiting = Below(5) == 0;
    if (!group.waiting) TakeAnswer(group);
  }

  void TakeAnswer(TestGroup& group) {
    group.waiting = false;
    group.rule->Take({0, group.sent, group.answer}, absl::MakeSpan(group.x));
    for (uint64_t i = 0; i < kValues; ++i) {
      const double c = group.answer_should[i];
      if (i < kParameters && !distances()) {
        group.sum[i] -= group.sent_should[i];
        group.x_should[i] = c;
      } else {
        // The group keeps the moves that it made since it sent.
        const double at_send = group.anchor[i] - group.sent_should[i];
        group.x_should[i] = c + (group.x_should[i] - at_send);
        group.anchor[i] = c;
      }
    }
  }

  void ExchangeTogether(const std::vector<uint32_t>& who) {
    Round round({1, absl::ZeroDuration()});
    Roster roster(static_cast<uint32_t>(groups_.size()));
    for (const uint32_t group : who) {
      const Contribution from = Send(group);
      round.Add(absl::UnixEpoch(), from);
      if (Below(4) == 0) round.Add(absl::UnixEpoch(), from);
    }
    ASSERT_TRUE(round.Decide(absl::UnixEpoch(), roster).complete);
    const std::vector<float> answer = Update(round.contributions());
    for (const uint32_t group : who) Answer(group, answer);
  }

  void ExchangeAlone(uint32_t group) {
    const Contribution from = Send(group);
    Answer(group, Update({&from, 1}));
  }

  std::vector<float> Update(absl::Span<const Contribution> from) {
    uint64_t furthest = 1;
    for (const Contribution& each : from) furthest = std::max(furthest, each.sequence);
    CenterBlock block;
    block.values = absl::MakeSpan(center_);
    block.state = absl::MakeSpan(state_);
    block.parameters = kParameters;
    block.update = ++version_;
    block.epoch = static_cast<double>(furthest - 1) / kStepsPerEpoch;
    std::vector<float> answer(kValues);
    rule_->Apply(from, block, absl::MakeSpan(answer));
    UpdateReference(from, block.epoch);
    EXPECT_EQ(answer, center_);
    return answer;
  }

  // Moves the reference center by the formulas of docs/rules/.
  void UpdateReference(absl::Span<const Contribution> from, double epoch) {
    const auto weight = [](const Contribution& each) { return each.samples * static_cast<double>(each.steps); };
    double weights = 0;
    for (const Contribution& each : from) weights += weight(each);
    std::vector<double> mean(kValues);
    for (const Contribution& each : from) {
      const std::vector<double>& sent = groups_[each.group].sent_should;
      for (uint64_t i = 0; i < kValues; ++i) {
        if (i >= kParameters) {
          const double share = in_rounds() ? weight(each) / weights : 1.0 / options_.groups;
          mean[i] += share * sent[i];
        } else if (case_.formula == Formula::kDownpour) {
          mean[i] += sent[i];
        } else {
          mean[i] += (distances() ? weight(each) : each.samples) * sent[i] / weights;
        }
      }
    }
    const double factor = case_.cosine ? 0.1 + 0.9 * (1 + std::cos(std::acos(-1.0) * epoch / kEpochs)) / 2 : 1;
    double rate = options_.schedule.learning_rate * factor;
    if (case_.formula == Formula::kSlowMo) {
      for (uint64_t i = 0; i < kParameters; ++i) mean[i] /= factor;
    }
    rate /= std::pow(1 + static_cast<double>(from.front().staleness), options_.staleness_power);
    reference_.Step(rate, mean, center_should_);
    for (uint64_t i = kParameters; i < kValues; ++i) center_should_[i] -= mean[i];
  }

  void Check() {
    const auto near = [](float is, double should) { return std::abs(is - should) < 2e-4 * (1 + std::abs(should)); };
    for (uint64_t i = 0; i < kValues; ++i) {
      ASSERT_TRUE(near(center_[i], center_should_[i]))
          << "center " << i << ": " << center_[i] << ", should be " << center_should_[i];
      for (const TestGroup& group : groups_) {
        ASSERT_TRUE(near(group.x[i], group.x_should[i]))
            << "group " << i << ": " << group.x[i] << ", should be " << group.x_should[i];
      }
    }
  }

  bool in_rounds() const { return case_.formula == Formula::kSync || distances(); }
  bool distances() const { return case_.formula == Formula::kDistances || case_.formula == Formula::kSlowMo; }

  const Case case_;
  const CenterRuleOptions& options_;
  std::mt19937 random_;
  const std::unique_ptr<CenterRule> rule_;
  ReferenceOptimizer reference_;
  std::vector<float> center_;
  std::vector<double> center_should_;
  std::vector<float> state_;
  uint64_t version_ = 0;
  std::vector<TestGroup> groups_;
};

OptimizerOptions Sgd(double momentum, bool nesterov = false) {
  OptimizerOptions options;
  options.momentum = momentum;
  options.nesterov = nesterov;
  return options;
}

// Makes a case. Where groups send gradients, and for slowmo, the center's schedule is the groups' cosine. Otherwise its
// rate is constant.
Case Make(std::string name, RuleName rule, Formula formula, const OptimizerOptions& optimizer, double rate) {
  Case c{std::move(name), formula};
  c.cosine = formula != Formula::kDistances;
  c.options.rule = rule;
  c.options.optimizer = optimizer;
  c.options.schedule.learning_rate = rate;
  c.options.schedule.total_epochs = kEpochs;
  c.options.schedule.final_fraction = 0.1;
  if (c.cosine) c.options.schedule.name = LearningRateName::kCosine;
  c.options.staleness_bound = 4;
  return c;
}

std::vector<Case> Cases() {
  OptimizerOptions adam;
  adam.name = OptimizerName::kAdam;
  adam.epsilon = 1e-3;
  adam.weight_decay = 0.01;
  OptimizerOptions adamw = adam;
  adamw.name = OptimizerName::kAdamW;
  OptimizerOptions decayed = Sgd(0);
  decayed.weight_decay = 0.01;
  std::vector<Case> cases = {
      Make("sync", RuleName::kSync, Formula::kSync, Sgd(0), 0.1),
      Make("sync decayed", RuleName::kSync, Formula::kSync, decayed, 0.1),
      Make("sync momentum", RuleName::kSync, Formula::kSync, Sgd(0.9), 0.1),
      Make("sync nesterov", RuleName::kSync, Formula::kSync, Sgd(0.9, true), 0.1),
      Make("sync adam", RuleName::kSync, Formula::kSync, adam, 0.01),
      Make("sync adamw", RuleName::kSync, Formula::kSync, adamw, 0.01),
      Make("async", RuleName::kAsync, Formula::kAsync, Sgd(0), 0.1),
      Make("async momentum, by staleness", RuleName::kAsync, Formula::kAsync, Sgd(0.5), 0.1),
      Make("async adam", RuleName::kAsync, Formula::kAsync, adam, 0.01),
      Make("ssp", RuleName::kSsp, Formula::kAsync, Sgd(0), 0.1),
      Make("downpour, by staleness", RuleName::kDownpour, Formula::kDownpour, Sgd(0), 0.05),
      Make("average", RuleName::kAverage, Formula::kDistances, Sgd(0), 1),
      Make("bmuf", RuleName::kBmuf, Formula::kDistances, Sgd(0.75), 1),
      Make("bmuf nesterov", RuleName::kBmuf, Formula::kDistances, Sgd(0.75, true), 1),
      Make("slowmo", RuleName::kSlowMo, Formula::kSlowMo, Sgd(0.7), 1),
      Make("diloco", RuleName::kDiLoCo, Formula::kDistances, Sgd(0.9, true), 0.7),
  };
  for (Case& c : cases) {
    if (c.name.find("by staleness") != std::string::npos) c.options.staleness_power = 0.5;
  }
  return cases;
}

// In each of a hundred random schedules with one to eight groups, the center and every group follow the formulas.
// Groups may be left out, send twice or get their answer late.
TEST(CenterStepTest, FollowsTheFormulas) {
  for (Case& c : Cases()) {
    for (uint32_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      c.options.groups = seed % 8 + 1;
      Simulation(c, seed).Run();
      if (HasFatalFailure()) return;
    }
  }
}

// Applies contributions of a single parameter to a center of 0.
float CenterAfter(const CenterRuleOptions& options, const std::vector<Contribution>& from) {
  float center = 0, answer = 0;
  std::vector<float> state(2);
  const auto rule = MakeCenterRule(options).value();
  CenterBlock block;
  block.values = {&center, 1};
  block.state = absl::MakeSpan(state).first(rule->traits().state_values);
  block.parameters = 1;
  rule->Apply(from, block, {&answer, 1});
  EXPECT_EQ(answer, center);
  return center;
}

// SlowMo at and before the end of a cosine that falls to 0. The learning rate counts as at least a hundredth of its
// peak. So the groups' last distances move the center fully, and the velocity from earlier rounds moves it in
// proportion to the rate.
TEST(CenterStepTest, SlowMoTakesTheLastDistances) {
  CenterRuleOptions options = Make("slowmo", RuleName::kSlowMo, Formula::kSlowMo, Sgd(0.7), 1).options;
  options.schedule.final_fraction = 0;
  const auto rule = MakeCenterRule(options).value();
  const std::vector<float> gone = {2};
  std::vector<Contribution> from(1);
  from[0].values = gone;
  struct Moment {
    double epochs;  // Epochs left until the schedule's end.
    float rate;     // (1 + cos(pi (20 - epochs) / 20)) / 2, or 0.01.
  };
  for (const auto& [epochs, rate] : {Moment{0, 0.01f}, Moment{0.01, 0.01f}, Moment{1, 0.01f}, Moment{4, 0.0954915f}}) {
    float center = 0, state = 0, answer = 0;
    CenterBlock block;
    block.values = {&center, 1};
    block.state = {&state, 1};
    block.parameters = 1;
    block.epoch = 0;
    rule->Apply(from, block, {&answer, 1});
    EXPECT_FLOAT_EQ(center, -2);
    EXPECT_FLOAT_EQ(state, 2);
    block.epoch = options.schedule.total_epochs - epochs;
    rule->Apply(from, block, {&answer, 1});
    EXPECT_NEAR(center, -2 - 2 - rate * 0.7f * 2, 1e-5) << epochs;
    EXPECT_NEAR(state, 0.7f * 2 + 2 / rate, 1e-3) << epochs;
  }
}

// Four groups of one rank step the center as one group of four ranks does with the same gradients. The one group sends
// their mean.
TEST(CenterStepTest, GroupsOfOneAndOneGroupMakeTheSameStep) {
  const std::vector<float> gradients = {1, 2, 4, 9};
  const std::vector<float> mean = {4};
  std::vector<Contribution> four(4), one(1);
  for (uint32_t i = 0; i < 4; ++i) {
    four[i].group = i;
    four[i].values = absl::MakeSpan(gradients).subspan(i, 1);
  }
  one[0].values = mean;
  for (const Case& c : Cases()) {
    if (c.options.rule != RuleName::kSync) continue;
    EXPECT_EQ(CenterAfter(c.options, four), CenterAfter(c.options, one)) << c.name;
    EXPECT_LT(CenterAfter(c.options, one), 0) << c.name;
  }
}

// If no group has moved, a center of 0 stays bitwise 0. Cases with weight decay are left out.
TEST(CenterStepTest, NothingSentNothingMoves) {
  const std::vector<float> nothing = {0};
  std::vector<Contribution> from(1);
  from[0].values = nothing;
  for (const Case& c : Cases()) {
    if (c.options.optimizer.weight_decay == 0) {
      EXPECT_EQ(CenterAfter(c.options, from), 0) << c.name;
    }
  }
}

}  // namespace
}  // namespace hooke
