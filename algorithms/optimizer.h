#ifndef HOOKE_ALGORITHMS_OPTIMIZER_H_
#define HOOKE_ALGORITHMS_OPTIMIZER_H_

// Optimizers over flat spans: one call steps a whole vector. Formulas are those of torch.optim 1.13; tests compare the
// two.
//
// An Optimizer owns its state (momentum, moments), which starts at zero. Its length is fixed at construction. Not
// thread-safe; two objects share nothing.

#include <cstdint>
#include <memory>

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
  virtual ~Optimizer() = default;

  // Makes one step. `gradient` and `parameters` have the length given to MakeOptimizer and do not overlap.
  virtual void Step(double learning_rate, absl::Span<const float> gradient, absl::Span<float> parameters) = 0;

  // Returns to the state of a new optimizer.
  virtual void Reset() = 0;
};

// INVALID_ARGUMENT names the option that is out of range and the allowed values.
absl::Status CheckOptimizer(const OptimizerOptions& options);

// For a vector of `values` parameters. Fails like CheckOptimizer.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options, uint64_t values);

// ---- The same with the state in the caller's hands, so that a server can store a block's state and put it back.

// The number of state values for each parameter: 0 (plain SGD), 1 (SGD with momentum) or 2 (Adam, AdamW).
uint32_t OptimizerStateValues(const OptimizerOptions& options);

struct OptimizerStep {
  double learning_rate = 0;
  uint64_t number = 1;  // The number of this step for these parameters, counted from 1.
  // SGD only: the fraction of a whole step, > 0 to 1. Velocity decays and pushes by that much less. In the end a
  // gradient moves parameters by learning_rate / (1 - momentum) times it, however steps are cut.
  double part = 1;
};

// Makes one step. `options` pass CheckOptimizer; `state` has OptimizerStateValues(options) values for each parameter,
// all zero before the first step. The spans do not overlap.
void StepOptimizer(const OptimizerOptions& options, const OptimizerStep& step, absl::Span<const float> gradient,
                   absl::Span<float> state, absl::Span<float> parameters);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_OPTIMIZER_H_
