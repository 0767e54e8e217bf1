#include "algorithms/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/base/macros.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

// The kernels: each is one pass over memory, with scalars rounded to float once per step.

// State that decays without gradient (dead units, constant pixels) would stop at a subnormal number, where a processor
// takes up to a hundred times longer for each later step.
inline float ZeroIfSubnormal(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min() ? 0.0f : value;
}

struct SgdScalars {
  float learning_rate;
  float momentum;
  float weight_decay;
};

void PlainSgd(SgdScalars s, const float* __restrict g, float* __restrict p, size_t n) {
  for (size_t i = 0; i < n; ++i) p[i] -= s.learning_rate * (g[i] + s.weight_decay * p[i]);
}

template <bool kNesterov>
void MomentumSgd(SgdScalars s, const float* __restrict g, float* __restrict v, float* __restrict p, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const float slope = g[i] + s.weight_decay * p[i];
    const float velocity = ZeroIfSubnormal(s.momentum * v[i] + slope);
    v[i] = velocity;
    p[i] -= s.learning_rate * (kNesterov ? slope + s.momentum * velocity : velocity);
  }
}

struct AdamScalars {
  float l2;      // Adam's weight decay, part of the gradient; AdamW: 0.
  float shrink;  // AdamW's decay factor of this step; Adam: 1.
  float beta1;
  float beta1_rest;  // 1 - beta1, rounded from double: 1 - 0.999f would be off in its fourth digit.
  float beta2;
  float beta2_rest;
  float root_correction;  // 1 / sqrt(1 - beta2^t).
  float epsilon;
  float step_size;  // learning rate / (1 - beta1^t).
};

void AdamKernel(AdamScalars s, const float* __restrict g, float* __restrict m, float* __restrict v, float* __restrict p,
                size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const float slope = g[i] + s.l2 * p[i];
    const float first = ZeroIfSubnormal(s.beta1 * m[i] + s.beta1_rest * slope);
    const float second = ZeroIfSubnormal(s.beta2 * v[i] + s.beta2_rest * slope * slope);
    m[i] = first;
    v[i] = second;
    p[i] = s.shrink * p[i] - s.step_size * first / (std::sqrt(second) * s.root_correction + s.epsilon);
  }
}

class Sgd : public Optimizer {
 public:
  Sgd(const OptimizerOptions& options, uint64_t values)
      : options_(options), values_(values), velocity_(options.momentum > 0 ? values : 0) {}

  void Step(double learning_rate, absl::Span<const float> gradient, absl::Span<float> parameters) override {
    ABSL_ASSERT(gradient.size() == values_ && parameters.size() == values_);
    const SgdScalars scalars{static_cast<float>(learning_rate), static_cast<float>(options_.momentum),
                             static_cast<float>(options_.weight_decay)};
    const float* g = gradient.data();
    float* p = parameters.data();
    if (velocity_.empty()) {
      PlainSgd(scalars, g, p, values_);
    } else if (options_.nesterov) {
      MomentumSgd<true>(scalars, g, velocity_.data(), p, values_);
    } else {
      MomentumSgd<false>(scalars, g, velocity_.data(), p, values_);
    }
  }

  void Reset() override { std::fill(velocity_.begin(), velocity_.end(), 0.0f); }

 private:
  const OptimizerOptions options_;
  const size_t values_;
  std::vector<float> velocity_;  // Empty without momentum.
};

// Adam and AdamW: they differ in what weight decay does.
class Adam : public Optimizer {
 public:
  Adam(const OptimizerOptions& options, uint64_t values) : options_(options), first_(values), second_(values) {}

  void Step(double learning_rate, absl::Span<const float> gradient, absl::Span<float> parameters) override {
    ABSL_ASSERT(gradient.size() == first_.size() && parameters.size() == first_.size());
    ++steps_;
    const bool decoupled = options_.name == OptimizerName::kAdamW;
    const double correction1 = 1 - std::pow(options_.beta1, static_cast<double>(steps_));
    const double correction2 = 1 - std::pow(options_.beta2, static_cast<double>(steps_));
    AdamScalars scalars;
    scalars.l2 = static_cast<float>(decoupled ? 0 : options_.weight_decay);
    scalars.shrink = static_cast<float>(decoupled ? 1 - learning_rate * options_.weight_decay : 1);
    scalars.beta1 = static_cast<float>(options_.beta1);
    scalars.beta1_rest = static_cast<float>(1 - options_.beta1);
    scalars.beta2 = static_cast<float>(options_.beta2);
    scalars.beta2_rest = static_cast<float>(1 - options_.beta2);
    scalars.root_correction = static_cast<float>(1 / std::sqrt(correction2));
    scalars.epsilon = static_cast<float>(options_.epsilon);
    scalars.step_size = static_cast<float>(learning_rate / correction1);
    AdamKernel(scalars, gradient.data(), first_.data(), second_.data(), parameters.data(), first_.size());
  }

  void Reset() override {
    steps_ = 0;
    std::fill(first_.begin(), first_.end(), 0.0f);
    std::fill(second_.begin(), second_.end(), 0.0f);
  }

 private:
  const OptimizerOptions options_;
  uint64_t steps_ = 0;
  std::vector<float> first_;
  std::vector<float> second_;
};

absl::Status OutOfRange(absl::string_view option, double value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("optimizer: ", option, " is ", value, "; allowed is ", allowed));
}

bool IsFraction(double value) { return value >= 0 && value < 1; }

// Each condition is written so that NaN is refused too.
absl::Status CheckOptimizer(const OptimizerOptions& options) {
  if (!(options.weight_decay >= 0 && std::isfinite(options.weight_decay))) {
    return OutOfRange("weight_decay", options.weight_decay, "weight_decay >= 0");
  }
  switch (options.name) {
    case OptimizerName::kSgd:
      if (!IsFraction(options.momentum)) return OutOfRange("momentum", options.momentum, "0 <= momentum < 1");
      if (options.nesterov && options.momentum == 0) {
        return absl::InvalidArgumentError("optimizer: nesterov is set and momentum is 0; nesterov needs momentum > 0");
      }
      return absl::OkStatus();
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW:
      if (!IsFraction(options.beta1)) return OutOfRange("beta1", options.beta1, "0 <= beta1 < 1");
      if (!IsFraction(options.beta2)) return OutOfRange("beta2", options.beta2, "0 <= beta2 < 1");
      if (!(options.epsilon > 0 && std::isfinite(options.epsilon))) {
        return OutOfRange("epsilon", options.epsilon, "epsilon > 0");
      }
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("optimizer: name number ", static_cast<int>(options.name),
                                                 " is not known; allowed are sgd, adam and adamw"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options, uint64_t values) {
  if (absl::Status checked = CheckOptimizer(options); !checked.ok()) return checked;
  if (options.name == OptimizerName::kSgd) return std::make_unique<Sgd>(options, values);
  return std::make_unique<Adam>(options, values);
}

}  // namespace hooke
