#ifndef HOOKE_ALGORITHMS_CENTER_STEP_H_
#define HOOKE_ALGORITHMS_CENTER_STEP_H_

// The rules in which the servers step the center with an optimizer. The groups' contributions become one gradient, and
// the answer is the new center.
//
// These rules differ only in the options below: synchronous SGD; asynchronous SGD; bounded staleness (Ho et al., NIPS
// 2013); Downpour (Dean et al., NIPS 2012); averaging; BMUF (Chen and Huo, ICASSP 2016); SlowMo (Wang et al., ICLR
// 2020); DiLoCo (Douillard et al., arXiv 2311.08105).
//
// Only MakeCenterRule calls MakeCenterStep.

#include <memory>

#include "algorithms/center_rule.h"

namespace hooke {

// How contributions v_g become one gradient. Each contribution v_g stands for s_g steps of n_g samples.
enum class Mixing {
  kMeanOfSums,    // sum n_g v_g / sum n_g s_g: contributions are sums of gradients.
  kWeightedMean,  // sum n_g s_g v_g / sum n_g s_g: contributions are distances.
  kSum,           // v, the value of the only contribution.
};

struct CenterStepOptions {
  const char* name = "";
  RuleTraits traits;  // MakeCenterStep sets state_values, because the optimizer decides it.
  Mixing mixing = Mixing::kMeanOfSums;
  OptimizerOptions optimizer;    // Passes CheckOptimizer.
  LearningRateOptions schedule;  // Passes CheckLearningRate.
  // True: the gradient is divided by the schedule's factor, so that distances made at a lower learning rate count as
  // much. A factor below 0.01 counts as 0.01, in this division and in the optimizer's step.
  bool relative_to_rate = false;
  double staleness_power = 0;  // The learning rate is divided by (1 + staleness)^staleness_power.
  double buffer_share = 1;     // Without in_rounds: the center moves by this fraction of a group's buffer distances.
};

std::unique_ptr<CenterRule> MakeCenterStep(const CenterStepOptions& options);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_CENTER_STEP_H_
