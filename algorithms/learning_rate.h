#ifndef HOOKE_ALGORITHMS_LEARNING_RATE_H_
#define HOOKE_ALGORITHMS_LEARNING_RATE_H_

// The learning rate over training time. Pure.

#include "absl/status/status.h"

namespace hooke {

enum class LearningRateName { kConstant, kStep, kCosine };

struct LearningRateOptions {
  LearningRateName name = LearningRateName::kConstant;
  double learning_rate = 0.1;  // Peak; > 0.
  double total_epochs = 1;     // > 0.
  double warmup_epochs = 0;    // Linear from 0 to the peak over [0, warmup_epochs); 0 <= warmup_epochs < total_epochs.
  // kStep: every `step_epochs` epochs, counted from 0, the rate is multiplied by step_factor; > 0.
  double step_epochs = 1;
  double step_factor = 0.1;  // kStep: > 0, <= 1.
  // kCosine: after warm-up the rate falls along half a cosine from the peak to peak * final_fraction; 0 to 1.
  double final_fraction = 0;
};

// INVALID_ARGUMENT names the option that is out of range and the allowed values.
absl::Status CheckLearningRate(const LearningRateOptions& options);

// Returns the learning rate after `epoch` passes over the data; `epoch` >= 0 may be fractional. After total_epochs the
// rate no longer changes. `options` must pass CheckLearningRate.
double LearningRate(const LearningRateOptions& options, double epoch);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_LEARNING_RATE_H_
