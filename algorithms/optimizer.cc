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

// The kernels. Each makes one pass over memory; its scalars are rounded to float once per step.

// State that gets no gradient (dead units, constant pixels) decays until it is subnormal and would then stay subnormal.
// Processors take up to a hundred times longer for arithmetic on subnormal numbers.
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

struct PartialScalars {
  float of_slope;
  float of_velocity;
  float weight_decay;
  float decay;
};

// One step with OptimizerStep::part < 1.
void PartialSgd(PartialScalars s, const float* __restrict g, float* __restrict v, float* __restrict p, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const float slope = g[i] + s.weight_decay * p[i];
    p[i] -= s.of_slope * slope + s.of_velocity * v[i];
    v[i] = ZeroIfSubnormal(s.decay * v[i] + slope);
  }
}

// With momentum m and part w, the velocity v decays by the factor m^w. The parameters move by slope + push v, where
// push = m (1 - m^w) / (1 - m). For a whole step push is m, so the result is MomentumSgd's but for rounding. Nesterov's
// move slope + m (m v + slope) becomes (1 + m) slope + m push v. The moves that a slope causes in later steps
// telescope: they sum to m / (1 - m) times the slope, whatever the parts are.
PartialScalars ScalarsOfPart(const OptimizerOptions& options, const OptimizerStep& step) {
  const double decay = std::pow(options.momentum, step.part);
  const double push = options.momentum * (1 - decay) / (1 - options.momentum);
  PartialScalars scalars;
  scalars.of_slope = static_cast<float>(step.learning_rate * (options.nesterov ? 1 + options.momentum : 1));
  scalars.of_velocity = static_cast<float>(step.learning_rate * (options.nesterov ? options.momentum * push : push));
  scalars.weight_decay = static_cast<float>(options.weight_decay * step.part);
  scalars.decay = static_cast<float>(decay);
  return scalars;
}

struct AdamScalars {
  float l2;      // Adam's weight decay, added to the gradient; 0 for AdamW.
  float shrink;  // AdamW's decay factor of this step; 1 for Adam.
  float beta1;
  float beta1_rest;  // 1 - beta1, computed in double; 1 - 0.999f is off by 1e-5 of its value.
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

void StepSgd(const OptimizerOptions& options, const OptimizerStep& step, absl::Span<const float> gradient,
             absl::Span<float> velocity, absl::Span<float> parameters) {
  const SgdScalars scalars{static_cast<float>(step.learning_rate), static_cast<float>(options.momentum),
                           static_cast<float>(options.weight_decay * step.part)};
  const float* g = gradient.data();
  float* p = parameters.data();
  if (options.momentum == 0) {
    PlainSgd(scalars, g, p, parameters.size());
  } else if (step.part != 1) {
    PartialSgd(ScalarsOfPart(options, step), g, velocity.data(), p, parameters.size());
  } else if (options.nesterov) {
    MomentumSgd<true>(scalars, g, velocity.data(), p, parameters.size());
  } else {
    MomentumSgd<false>(scalars, g, velocity.data(), p, parameters.size());
  }
}

// Makes a step of Adam or AdamW, which differ only in how weight decay acts.
void StepAdam(const OptimizerOptions& options, const OptimizerStep& step, absl::Span<const float> gradient,
              absl::Span<float> moments, absl::Span<float> parameters) {
  const bool decoupled = options.name == OptimizerName::kAdamW;
  const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step.number));
  const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step.number));
  AdamScalars scalars;
  scalars.l2 = static_cast<float>(decoupled ? 0 : options.weight_decay);
  scalars.shrink = static_cast<float>(decoupled ? 1 - step.learning_rate * options.weight_decay : 1);
  scalars.beta1 = static_cast<float>(options.beta1);
  scalars.beta1_rest = static_cast<float>(1 - options.beta1);
  scalars.beta2 = static_cast<float>(options.beta2);
  scalars.beta2_rest = static_cast<float>(1 - options.beta2);
  scalars.root_correction = static_cast<float>(1 / std::sqrt(correction2));
  scalars.epsilon = static_cast<float>(options.epsilon);
  scalars.step_size = static_cast<float>(step.learning_rate / correction1);
  const size_t n = parameters.size();
  AdamKernel(scalars, gradient.data(), moments.data(), moments.data() + n, parameters.data(), n);
}

absl::Status OutOfRange(absl::string_view option, double value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("optimizer: ", option, " is ", value, "; allowed is ", allowed));
}

bool IsFraction(double value) { return value >= 0 && value < 1; }

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, uint64_t values)
    : options_(options), values_(values), state_(values * OptimizerStateValues(options)) {}

void Optimizer::Step(double learning_rate, absl::Span<const float> gradient, absl::Span<float> parameters) {
  ABSL_ASSERT(gradient.size() == values_ && parameters.size() == values_);
  StepOptimizer(options_, {learning_rate, ++steps_}, gradient, absl::MakeSpan(state_), parameters);
}

void Optimizer::Reset() {
  steps_ = 0;
  std::fill(state_.begin(), state_.end(), 0.0f);
}

absl::Status Optimizer::Restore(State state) {
  if (state.values.size() != state_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an optimizer's state has ", state.values.size(), " values; this optimizer has ", state_.size()));
  }
  steps_ = state.steps;
  state_ = std::move(state.values);
  return absl::OkStatus();
}

// Each condition is written so that NaN is refused, too.
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

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options, uint64_t values) {
  if (absl::Status checked = CheckOptimizer(options); !checked.ok()) return checked;
  return std::make_unique<Optimizer>(options, values);
}

uint32_t OptimizerStateValues(const OptimizerOptions& options) {
  if (options.name != OptimizerName::kSgd) return 2;
  return options.momentum > 0 ? 1 : 0;
}

void StepOptimizer(const OptimizerOptions& options, const OptimizerStep& step, absl::Span<const float> gradient,
                   absl::Span<float> state, absl::Span<float> parameters) {
  ABSL_ASSERT(gradient.size() == parameters.size());
  ABSL_ASSERT(state.size() == parameters.size() * OptimizerStateValues(options));
  if (options.name == OptimizerName::kSgd) {
    StepSgd(options, step, gradient, state, parameters);
  } else {
    StepAdam(options, step, gradient, state, parameters);
  }
}

}  // namespace hooke
