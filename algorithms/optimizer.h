#ifndef HOOKE_ALGORITHMS_OPTIMIZER_H_
#define HOOKE_ALGORITHMS_OPTIMIZER_H_

// Optimizers over flat spans: one call steps a whole vector. The formulas are those of torch.optim 1.13, and tests
// compare the results with torch's.
//
// An Optimizer owns its state (momentum, moments), which starts at zero. The length of its vector is fixed at
// construction. Not thread-safe; two objects share nothing.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hooke {

enum class OptimizerName { kSgd, kAdam, kAdamW };

struct OptimizerOptions {
  OptimizerName name = OptimizerName::kSgd;
  double momentum = 0;      // kSgd: 0 to < 1. Polyak's heavy ball as torch.optim.SGD: v = momentum v + g; p -= lr v.
  bool nesterov = false;    // kSgd with momentum > 0: p -= lr (g + momentum v).
  double weight_decay = 0;  // >= 0. kSgd, kAdam: g += weight_decay p. kAdamW: p *= 1 - lr weight_decay.
  double beta1 = 0.9;       // kAdam, kAdamW: 0 to < 1.
  double beta2 = 0.999;     // kAdam, kAdamW: 0 to < 1.
  double epsilon = 1e-8;    // kAdam, kAdamW: > 0.
};

class Optimizer {
 public:
  // For a vector of `values` parameters. `options` pass CheckOptimizer.
  Optimizer(const OptimizerOptions& options, uint64_t values);

  // Makes one step. `gradient` and `parameters` have the length given to the constructor and do not overlap.
  void Step(double learning_rate, absl::Span<const float> gradient, absl::Span<float> parameters);

  // Returns to the state of a new optimizer.
  void Reset();

  // The state, to restore it in an optimizer with the same options and length. Steps go on from there bitwise alike.
  struct State {
    uint64_t steps = 0;
    std::vector<float> values;
  };
  State Save() const { return {steps_, state_}; }
  // INVALID_ARGUMENT: the state has another number of values than this optimizer; nothing has changed.
  absl::Status Restore(State state);

 private:
  const OptimizerOptions options_;
  const uint64_t values_;
  uint64_t steps_ = 0;
  std::vector<float> state_;  // The state in the form that StepOptimizer takes.
};

// INVALID_ARGUMENT names the option that is out of range and the allowed values.
absl::Status CheckOptimizer(const OptimizerOptions& options);

// Makes an optimizer. Fails like CheckOptimizer.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options, uint64_t values);

// ---- Optimizers whose state the caller holds, so that a server can store a block's state and restore it.

// Returns the number of state values for each parameter: 0 (plain SGD), 1 (SGD with momentum) or 2 (Adam, AdamW).
uint32_t OptimizerStateValues(const OptimizerOptions& options);

struct OptimizerStep {
  double learning_rate = 0;
  uint64_t number = 1;  // The number of this step for these parameters, counted from 1.
  // SGD only: what fraction of a whole step this step is; > 0, <= 1. The smaller it is, the less the velocity decays,
  // and the less it moves the parameters. In this and all later steps together, a gradient g moves the parameters by
  // g * learning_rate / (1 - momentum), whatever the fractions are.
  double part = 1;
};

// Makes one step. `options` pass CheckOptimizer; `state` has OptimizerStateValues(options) values for each parameter,
// all zero before the first step. The spans do not overlap.
void StepOptimizer(const OptimizerOptions& options, const OptimizerStep& step, absl::Span<const float> gradient,
                   absl::Span<float> state, absl::Span<float> parameters);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_OPTIMIZER_H_
