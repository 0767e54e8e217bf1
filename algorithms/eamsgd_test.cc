// Tests EAMSGD over random schedules against the paper's formulas in double precision: both halves of the elastic rule,
// and a group's Nesterov optimizer between exchanges.

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "algorithms/center_rule.h"
#include "algorithms/group_rule.h"
#include "algorithms/optimizer.h"
#include "algorithms/sharding.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

constexpr uint64_t kValues = 5;
constexpr double kRate = 0.05;
constexpr double kMomentum = 0.9;

// A group and its reference. Our code keeps parameters at the point where gradients are taken. The paper keeps x and a
// velocity, and takes gradients at x + momentum v.
struct TestGroup {
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<GroupRule> rule;
  std::vector<float> parameters;
  std::vector<double> x;
  std::vector<double> velocity = std::vector<double>(kValues);
  // True: an answer is on its way. It arrives some steps later.
  bool waiting = false;
  std::vector<float> sent;
  std::vector<float> answer;
  std::vector<double> answer_should;
};

class Simulation {
 public:
  Simulation(uint32_t groups, uint32_t seed) : random_(seed), alpha_(0.9 / (groups + 1)), groups_(groups) {
    CenterRuleOptions options;
    options.rule = RuleName::kElastic;
    options.alpha = alpha_;
    rule_ = MakeCenterRule(options).value();
    OptimizerOptions nesterov;
    nesterov.momentum = kMomentum;
    nesterov.nesterov = true;
    for (uint64_t i = 0; i < kValues; ++i) center_.push_back(Uniform());
    center_should_.assign(center_.begin(), center_.end());
    for (TestGroup& group : groups_) {
      group.optimizer = MakeOptimizer(nesterov, kValues).value();
      group.rule = MakeGroupRule(RuleName::kElastic, {kValues, kValues, {0, kValues}});
      group.parameters = center_;
      group.rule->Begin(group.parameters);
      group.x = center_should_;
    }
  }

  // A random group makes a step, exchanges, or gets its answer.
  void Happen() {
    TestGroup& group = groups_[Below(static_cast<uint32_t>(groups_.size()))];
    if (Below(3) > 0) {
      Step(group);
    } else if (group.waiting) {
      Take(group);
    } else {
      Exchange(group);
      if (Below(2) == 0) Take(group);
    }
  }

  // The tolerance covers a few hundred roundings of floats.
  void Check() const {
    const auto near = [](float is, double should) { return std::abs(is - should) < 1e-4 * (1 + std::abs(should)); };
    for (uint64_t i = 0; i < kValues; ++i) {
      ASSERT_TRUE(near(center_[i], center_should_[i])) << "center: " << center_[i] << ", not " << center_should_[i];
      for (const TestGroup& group : groups_) {
        ASSERT_TRUE(near(group.parameters[i], Place(group, i))) << group.parameters[i] << ", not " << Place(group, i);
      }
    }
  }

  int late() const { return late_; }

 private:
  float Uniform() { return std::uniform_real_distribution<float>(-1, 1)(random_); }
  uint32_t Below(uint32_t end) { return std::uniform_int_distribution<uint32_t>(0, end - 1)(random_); }

  // The point where the gradient is taken and which the group sends.
  static double Place(const TestGroup& group, uint64_t i) { return group.x[i] + kMomentum * group.velocity[i]; }

  // v <- m v - rate g(x + m v); x <- x + v. The loss is lowest near 0.
  void Step(TestGroup& group) {
    std::vector<float> gradient;
    for (uint64_t i = 0; i < kValues; ++i) {
      const float pull = Uniform();
      gradient.push_back(group.parameters[i] + pull);
      const double should = Place(group, i) + pull;
      group.velocity[i] = kMomentum * group.velocity[i] - kRate * should;
      group.x[i] += group.velocity[i];
    }
    group.optimizer->Step(kRate, gradient, absl::MakeSpan(group.parameters));
    group.rule->AddGradient(gradient);
    late_ += group.waiting ? 1 : 0;
  }

  // d = alpha (x - c); c <- c + d.
  void Exchange(TestGroup& group) {
    const absl::Span<const float> sent = group.rule->Prepare(group.parameters, {Range{0, kValues}});
    group.sent.assign(sent.begin(), sent.end());
    Contribution from;
    from.values = group.sent;
    CenterBlock block;
    block.values = absl::MakeSpan(center_);
    block.parameters = kValues;
    group.answer.assign(kValues, 0);
    rule_->Apply({&from, 1}, block, absl::MakeSpan(group.answer));
    group.answer_should.clear();
    for (uint64_t i = 0; i < kValues; ++i) {
      group.answer_should.push_back(alpha_ * (Place(group, i) - center_should_[i]));
      center_should_[i] += group.answer_should[i];
    }
    group.waiting = true;
  }

  // x <- x - d; the velocity stays as it is.
  void Take(TestGroup& group) {
    group.waiting = false;
    group.rule->Take({0, group.sent, group.answer}, absl::MakeSpan(group.parameters));
    for (uint64_t i = 0; i < kValues; ++i) group.x[i] -= group.answer_should[i];
  }

  std::mt19937 random_;
  const double alpha_;
  std::unique_ptr<CenterRule> rule_;
  std::vector<float> center_;
  std::vector<double> center_should_;
  std::vector<TestGroup> groups_;
  int late_ = 0;  // Steps made while an answer was on its way.
};

// A hundred schedules of one to eight groups, each at its own pace. Answers come at once or some steps later.
TEST(EamsgdTest, FollowsThePaper) {
  int late = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed % 8 + 1, seed);
    for (int event = 0; event < 400; ++event) {
      simulation.Happen();
      ASSERT_NO_FATAL_FAILURE(simulation.Check()) << "event " << event;
    }
    late += simulation.late();
  }
  EXPECT_GT(late, 1000);
}

}  // namespace
}  // namespace hooke
