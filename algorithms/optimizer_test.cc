#include "algorithms/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

// A slow reference: the formulas of optimizer.h, one value at a time, in double.
struct Reference {
  OptimizerOptions o;
  std::vector<double> p;
  std::vector<double> v;  // Momentum, or Adam's first moment.
  std::vector<double> s;  // Adam's second moment.
  int t = 0;

  Reference(const OptimizerOptions& options, const std::vector<float>& parameters)
      : o(options), p(parameters.begin(), parameters.end()), v(p.size()), s(p.size()) {}

  void Step(double lr, const std::vector<float>& gradient) {
    ++t;
    for (size_t i = 0; i < p.size(); ++i) {
      double g = gradient[i];
      if (o.name == OptimizerName::kSgd) {
        g = g + o.weight_decay * p[i];
        v[i] = o.momentum * v[i] + g;
        if (o.nesterov) {
          p[i] = p[i] - lr * (g + o.momentum * v[i]);
        } else {
          p[i] = p[i] - lr * v[i];
        }
      } else {
        if (o.name == OptimizerName::kAdam) g = g + o.weight_decay * p[i];
        if (o.name == OptimizerName::kAdamW) p[i] = p[i] * (1 - lr * o.weight_decay);
        v[i] = o.beta1 * v[i] + (1 - o.beta1) * g;
        s[i] = o.beta2 * s[i] + (1 - o.beta2) * g * g;
        const double v_unbiased = v[i] / (1 - std::pow(o.beta1, t));
        const double s_unbiased = s[i] / (1 - std::pow(o.beta2, t));
        p[i] = p[i] - lr * v_unbiased / (std::sqrt(s_unbiased) + o.epsilon);
      }
    }
  }
};

struct Case {
  std::string name;
  OptimizerOptions options;
  double learning_rate;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

OptimizerOptions Sgd(double momentum, bool nesterov, double weight_decay) {
  OptimizerOptions options;
  options.momentum = momentum;
  options.nesterov = nesterov;
  options.weight_decay = weight_decay;
  return options;
}

OptimizerOptions Adam(OptimizerName name, double weight_decay, double beta1, double beta2) {
  OptimizerOptions options;
  options.name = name;
  options.weight_decay = weight_decay;
  options.beta1 = beta1;
  options.beta2 = beta2;
  return options;
}

std::vector<float> RandomVector(std::mt19937_64& random, size_t values) {
  std::normal_distribution<float> normal;
  std::vector<float> v(values);
  for (float& x : v) x = normal(random);
  return v;
}

class OptimizerTest : public testing::TestWithParam<Case> {};

// 300 steps with a changing learning rate end where the double-precision reference does, to 2e-5 of max(1, |p|).
// Gradients are those of a quadratic plus noise. Sizes lie around the vector width, and there are several seeds.
TEST_P(OptimizerTest, EqualsTheDoublePrecisionReference) {
  const Case& c = GetParam();
  for (size_t values : {0, 1, 3, 4, 7, 8, 15, 16, 17, 63, 65, 257}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      std::mt19937_64 random(seed);
      std::vector<float> p = RandomVector(random, values);
      Reference reference(c.options, p);
      auto optimizer = MakeOptimizer(c.options, values);
      ASSERT_TRUE(optimizer.ok()) << optimizer.status();
      for (int step = 0; step < 300; ++step) {
        const double lr = c.learning_rate * (1 + 0.5 * std::sin(step));
        std::vector<float> gradient = RandomVector(random, values);
        for (size_t i = 0; i < values; ++i) gradient[i] += p[i];
        (*optimizer)->Step(lr, gradient, absl::MakeSpan(p));
        reference.Step(lr, gradient);
      }
      for (size_t i = 0; i < values; ++i) {
        ASSERT_NEAR(p[i], reference.p[i], 2e-5 * std::max(1.0, std::abs(reference.p[i])))
            << "value " << i << " of " << values << ", seed " << seed;
      }
    }
  }
}

// After Reset an optimizer steps bitwise as a new one; two optimizers share nothing.
TEST_P(OptimizerTest, ResetIsANewOne) {
  const Case& c = GetParam();
  std::mt19937_64 random(1);
  const size_t values = 33;
  const std::vector<float> start = RandomVector(random, values);
  const std::vector<float> gradient = RandomVector(random, values);
  const auto ten_steps = [&](Optimizer& optimizer) {
    std::vector<float> p = start;
    for (int i = 0; i < 10; ++i) optimizer.Step(c.learning_rate, gradient, absl::MakeSpan(p));
    return p;
  };
  auto used = MakeOptimizer(c.options, values);
  auto fresh = MakeOptimizer(c.options, values);
  ASSERT_TRUE(used.ok() && fresh.ok());
  ten_steps(**used);
  (*used)->Reset();
  EXPECT_EQ(ten_steps(**used), ten_steps(**fresh));
}

// Each optimizer finds the minimum of a quadratic from a distance of 3.
TEST_P(OptimizerTest, FindsTheMinimumOfABowl) {
  const Case& c = GetParam();
  OptimizerOptions options = c.options;
  options.weight_decay = 0;
  auto optimizer = MakeOptimizer(options, 5);
  ASSERT_TRUE(optimizer.ok());
  std::vector<float> p(5, 3.0f);
  for (int i = 0; i < 5000; ++i) {
    const std::vector<float> gradient = p;  // The gradient of p^2 / 2.
    (*optimizer)->Step(0.05 * (1 - i / 5000.0), gradient, absl::MakeSpan(p));
  }
  for (float x : p) EXPECT_NEAR(x, 0, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerTest,
    testing::Values(Case{"sgd", Sgd(0, false, 0), 0.05}, Case{"sgd_decay", Sgd(0, false, 0.01), 0.05},
                    Case{"momentum", Sgd(0.9, false, 0), 0.05}, Case{"momentum_decay", Sgd(0.9, false, 5e-4), 0.05},
                    Case{"nesterov", Sgd(0.9, true, 0), 0.05}, Case{"nesterov_decay", Sgd(0.5, true, 0.01), 0.05},
                    Case{"adam", Adam(OptimizerName::kAdam, 0, 0.9, 0.999), 1e-3},
                    Case{"adam_decay", Adam(OptimizerName::kAdam, 0.01, 0.9, 0.999), 1e-3},
                    Case{"adam_no_betas", Adam(OptimizerName::kAdam, 0, 0, 0), 1e-3},
                    Case{"adamw", Adam(OptimizerName::kAdamW, 0, 0.9, 0.999), 1e-3},
                    Case{"adamw_decay", Adam(OptimizerName::kAdamW, 0.1, 0.8, 0.99), 1e-3}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

// Long runs of zero gradients (dead units, constant pixels) leave no NaN, no movement and no subnormal velocities.
// Subnormal numbers would make each later step many times slower.
TEST(OptimizerZeroGradientTest, ParametersComeToRest) {
  const std::vector<float> zero(64, 0.0f);
  for (const OptimizerOptions& options :
       {Sgd(0.9, false, 0), Sgd(0.9, true, 0), Adam(OptimizerName::kAdam, 0, 0.9, 0.999)}) {
    auto optimizer = MakeOptimizer(options, 64);
    ASSERT_TRUE(optimizer.ok());
    std::vector<float> p(64, 1.0f);
    (*optimizer)->Step(0.01, std::vector<float>(64, 1e-3f), absl::MakeSpan(p));
    for (int i = 0; i < 2000; ++i) (*optimizer)->Step(0.01, zero, absl::MakeSpan(p));
    // The rate is so large that even the smallest velocity would show.
    const std::vector<float> rest = p;
    (*optimizer)->Step(1e38, zero, absl::MakeSpan(p));
    EXPECT_EQ(p, rest);
  }
}

// The refusal of an option out of range gives its name, its value and the allowed values.
TEST(MakeOptimizerTest, RefusesOptionsOutOfRange) {
  struct Row {
    OptimizerOptions options;
    std::string message;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  OptimizerOptions no_epsilon;
  no_epsilon.name = OptimizerName::kAdam;
  no_epsilon.epsilon = 0;
  OptimizerOptions unknown;
  unknown.name = static_cast<OptimizerName>(5);
  const Row rows[] = {
      {Sgd(1, false, 0), "optimizer: momentum is 1; allowed is 0 <= momentum < 1"},
      {Sgd(-0.1, false, 0), "optimizer: momentum is -0.1; allowed is 0 <= momentum < 1"},
      {Sgd(nan, false, 0), "optimizer: momentum is nan; allowed is 0 <= momentum < 1"},
      {Sgd(0, true, 0), "optimizer: nesterov is set and momentum is 0; nesterov needs momentum > 0"},
      {Sgd(0, false, -1), "optimizer: weight_decay is -1; allowed is weight_decay >= 0"},
      {Sgd(0, false, nan), "optimizer: weight_decay is nan; allowed is weight_decay >= 0"},
      {Adam(OptimizerName::kAdam, 0, 1, 0.9), "optimizer: beta1 is 1; allowed is 0 <= beta1 < 1"},
      {Adam(OptimizerName::kAdamW, 0, 0.9, 1.5), "optimizer: beta2 is 1.5; allowed is 0 <= beta2 < 1"},
      {Adam(OptimizerName::kAdamW, -2, 0.9, 0.9), "optimizer: weight_decay is -2; allowed is weight_decay >= 0"},
      {no_epsilon, "optimizer: epsilon is 0; allowed is epsilon > 0"},
      {unknown, "optimizer: name number 5 is not known; allowed are sgd, adam and adamw"},
  };
  for (const Row& row : rows) {
    const absl::Status status = MakeOptimizer(row.options, 4).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.message;
    EXPECT_EQ(std::string(status.message()), row.message);
  }
}

}  // namespace
}  // namespace hooke
