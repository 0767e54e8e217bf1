#ifndef HOOKE_ALGORITHMS_OPTIMIZER_H_
#define HOOKE_ALGORITHMS_OPTIMIZER_H_

// Optimizers over flat spans: one call steps a whole vector. Formulas are those of torch.optim 1.13, which the tests
// compare with.
//
// An Optimizer owns its state (momentum, moments), zero at the start, of the length it was made for. Not thread-safe;
// two objects never share anything.

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

  // One step. `gradient` and `parameters` have the length the optimizer was made for and do not overlap.
  virtual void Step(double learning_rate, absl::Span<const float> gradient, absl::Span<float> parameters) = 0;

  // Back to the state of a new one.
  virtual void Reset() = 0;
};

// INVALID_ARGUMENT naming the option that is out of range and what is allowed.
absl::Status CheckOptimizer(const OptimizerOptions& options);

// Options must be right, or the status is CheckOptimizer's.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options, uint64_t values);

// An optimizer whose state its caller keeps, so that it can be stored and put back: servers step the center's blocks
// so.

// Values of state for each parameter: 0 (plain SGD), 1 (SGD with momentum) or 2 (Adam, AdamW).
uint32_t OptimizerStateValues(const OptimizerOptions& options);

struct OptimizerStep {
  double learning_rate = 0;
  uint64_t number = 1;  // Which step of these parameters it is, counted from 1.
  // SGD: how much of a whole step it is, > 0 to 1. Velocity decays and pushes by so much less; what a gradient moves in
  // the end stays the same, learning_rate / (1 - momentum) times it, however steps are cut.
  double part = 1;
};

// One step. `options` pass CheckOptimizer; `state` has OptimizerStateValues(options) values for each parameter, all
// zero before the first step. No overlaps.
void StepOptimizer(const OptimizerOptions& options, const OptimizerStep& step, absl::Span<const float> gradient,
                   absl::Span<float> state, absl::Span<float> parameters);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_OPTIMIZER_H_
