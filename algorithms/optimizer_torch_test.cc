// Compares our optimizers with LibTorch's, step by step on the same gradients.

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "algorithms/optimizer.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

struct Case {
  std::string name;
  OptimizerOptions options;
  double learning_rate;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

std::unique_ptr<torch::optim::Optimizer> TorchOptimizer(const Case& c, const std::vector<torch::Tensor>& parameters) {
  const OptimizerOptions& o = c.options;
  switch (o.name) {
    case OptimizerName::kSgd:
      return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(c.learning_rate)
                                                                 .momentum(o.momentum)
                                                                 .nesterov(o.nesterov)
                                                                 .weight_decay(o.weight_decay));
    case OptimizerName::kAdam:
      return std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(c.learning_rate)
                                                                  .betas(std::make_tuple(o.beta1, o.beta2))
                                                                  .eps(o.epsilon)
                                                                  .weight_decay(o.weight_decay));
    case OptimizerName::kAdamW:
      return std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(c.learning_rate)
                                                                   .betas(std::make_tuple(o.beta1, o.beta2))
                                                                   .eps(o.epsilon)
                                                                   .weight_decay(o.weight_decay));
  }
  return nullptr;
}

std::vector<float> RandomVector(std::mt19937_64& random, size_t values) {
  std::normal_distribution<float> normal;
  std::vector<float> v(values);
  for (float& x : v) x = normal(random);
  return v;
}

class OptimizerTorchTest : public testing::TestWithParam<Case> {};

// 200 steps with a changing learning rate stay within 1e-5 of max(1, |p|) of torch::optim after every step.
TEST_P(OptimizerTorchTest, StepsLikeTorch) {
  const Case& c = GetParam();
  const size_t values = 1003;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<float> p = RandomVector(random, values);
    torch::Tensor theirs = torch::empty({static_cast<int64_t>(values)});
    std::memcpy(theirs.data_ptr<float>(), p.data(), values * sizeof(float));
    theirs.set_requires_grad(true);
    theirs.mutable_grad() = torch::zeros_like(theirs);
    auto torch_optimizer = TorchOptimizer(c, {theirs});
    auto ours = MakeOptimizer(c.options, values);
    ASSERT_TRUE(ours.ok()) << ours.status();
    for (int step = 0; step < 200; ++step) {
      const double lr = c.learning_rate * (1 + 0.5 * std::sin(step));
      const std::vector<float> gradient = RandomVector(random, values);
      std::memcpy(theirs.mutable_grad().data_ptr<float>(), gradient.data(), values * sizeof(float));
      torch_optimizer->param_groups()[0].options().set_lr(lr);
      torch_optimizer->step();
      (*ours)->Step(lr, gradient, absl::MakeSpan(p));
      const float* q = theirs.data_ptr<float>();
      for (size_t i = 0; i < values; ++i) {
        ASSERT_NEAR(p[i], q[i], 1e-5 * std::max(1.0f, std::abs(q[i])))
            << "value " << i << " at step " << step << ", seed " << seed;
      }
    }
  }
}

OptimizerOptions Sgd(double momentum, bool nesterov, double weight_decay) {
  OptimizerOptions options;
  options.momentum = momentum;
  options.nesterov = nesterov;
  options.weight_decay = weight_decay;
  return options;
}

OptimizerOptions Adam(OptimizerName name, double weight_decay) {
  OptimizerOptions options;
  options.name = name;
  options.weight_decay = weight_decay;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerTorchTest,
    testing::Values(Case{"sgd", Sgd(0, false, 0), 0.05}, Case{"sgd_decay", Sgd(0, false, 0.01), 0.05},
                    Case{"momentum", Sgd(0.9, false, 0), 0.05}, Case{"momentum_decay", Sgd(0.9, false, 5e-4), 0.05},
                    Case{"nesterov", Sgd(0.9, true, 0), 0.05}, Case{"nesterov_decay", Sgd(0.9, true, 5e-4), 0.05},
                    Case{"adam", Adam(OptimizerName::kAdam, 0), 1e-3},
                    Case{"adam_decay", Adam(OptimizerName::kAdam, 0.01), 1e-3},
                    Case{"adamw", Adam(OptimizerName::kAdamW, 0), 1e-3},
                    Case{"adamw_decay", Adam(OptimizerName::kAdamW, 0.01), 1e-3}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace hooke
