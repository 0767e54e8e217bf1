#ifndef HOOKE_ALGORITHMS_CENTER_STEP_H_
#define HOOKE_ALGORITHMS_CENTER_STEP_H_

// The rules in which the servers step the center by an optimizer: the groups' contributions are put together into one
// gradient, and the answer is the new center. Synchronous SGD; asynchronous SGD, bounded staleness (Ho et al., NIPS
// 2013) and Downpour (Dean et al., NIPS 2012); averaging, BMUF (Chen and Huo, ICASSP 2016), SlowMo (Wang et al., ICLR
// 2020) and DiLoCo (Douillard et al., arXiv 2311.08105) differ in nothing but the options below.
//
// Made by MakeUpdateRule alone.

#include <memory>

#include "algorithms/update_rule.h"

namespace hooke {

// How contributions v_g, which stand for s_g steps, become the gradient.
enum class Mixing {
  kMeanOfSums,    // sum v_g / sum s_g: they are sums of gradients.
  kWeightedMean,  // sum s_g v_g / sum s_g: they are distances.
  kSum,           // v, of one group.
};

struct CenterStepOptions {
  const char* name = "";
  RuleTraits traits;  // But for state_values, which follows from the optimizer.
  Mixing mixing = Mixing::kMeanOfSums;
  OptimizerOptions optimizer;  // Passes CheckOptimizer.
  ScheduleOptions schedule;    // Passes CheckSchedule.
  // The gradient is divided by the schedule's factor: steps that groups made at a lower learning rate count as much. A
  // factor below 0.01 is 0.01, here and in the step.
  bool relative_to_rate = false;
  double staleness_power = 0;  // The learning rate is divided by (1 + staleness)^staleness_power.
  double buffer_share = 1;     // Without in_rounds: the part of a group's buffer distances that the center takes.
};

std::unique_ptr<UpdateRule> MakeCenterStep(const CenterStepOptions& options);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_CENTER_STEP_H_
