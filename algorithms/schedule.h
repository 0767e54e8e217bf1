#ifndef HOOKE_ALGORITHMS_SCHEDULE_H_
#define HOOKE_ALGORITHMS_SCHEDULE_H_

// Learning rate over training time. Pure.

#include "absl/status/status.h"

namespace hooke {

enum class ScheduleName { kConstant, kStep, kCosine };

struct ScheduleOptions {
  ScheduleName name = ScheduleName::kConstant;
  double learning_rate = 0.1;  // Peak; > 0.
  double total_epochs = 1;     // > 0.
  double warmup_epochs = 0;    // Linear from 0 to the peak over [0, warmup_epochs); 0 <= warmup_epochs < total_epochs.
  double step_epochs = 1;    // kStep: the rate is multiplied by step_factor each so many epochs (counted from 0); > 0.
  double step_factor = 0.1;  // kStep: > 0, <= 1.
  double final_fraction =
      0;  // kCosine: half a cosine from the peak, at the end of warm-up, to peak * final_fraction at the end; 0 to 1.
};

// INVALID_ARGUMENT naming the option that is out of range and what is allowed.
absl::Status CheckSchedule(const ScheduleOptions& options);

// The learning rate at `epoch` (fractional passes done, >= 0; beyond total_epochs the rate at total_epochs). Options
// must pass CheckSchedule.
double LearningRate(const ScheduleOptions& options, double epoch);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_SCHEDULE_H_
