#include "server/parameters/reference_center.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hooke {

void SetRule(const ReferenceRule& rule, v1::JobSpecForShard& job) {
  job.set_rule(rule.rule);
  job.set_interval(1);
  v1::OptimizerSpec& optimizer = *job.mutable_optimizer();
  optimizer.set_name(rule.adam ? v1::OptimizerSpec::ADAM : v1::OptimizerSpec::SGD);
  optimizer.set_learning_rate(rule.rate);
  optimizer.set_momentum(rule.momentum);
  optimizer.set_nesterov(rule.nesterov);
  optimizer.set_beta1(0.9);
  optimizer.set_beta2(0.999);
  optimizer.set_epsilon(1e-3);
  job.mutable_schedule()->set_name(rule.cosine ? v1::ScheduleSpec::COSINE : v1::ScheduleSpec::CONSTANT);
  job.mutable_schedule()->set_final_fraction(0.1);
  job.set_epochs(kReferenceEpochs);
  job.set_steps_per_epoch(kReferenceStepsPerEpoch);
  job.set_quorum(1);
  job.set_staleness_power(rule.staleness_power);
  job.set_staleness_bound(static_cast<uint32_t>(rule.staleness_bound));
}

ReferenceBlock::ReferenceBlock(const ReferenceRule& rule, uint64_t parameters, std::vector<double> values)
    : rule_(rule),
      parameters_(parameters),
      values_(std::move(values)),
      first_(values_.size()),
      second_(values_.size()) {}

void ReferenceBlock::StepAlone(const ReferenceSent& sent, uint64_t staleness, uint32_t groups) {
  ++updates_;
  const double fresh = std::pow(1 + static_cast<double>(staleness), rule_.staleness_power);
  const double rate = rule_.rate * FactorAt(sent.sequence) / fresh;
  const double steps = rule_.mixing == ReferenceMixing::kSumOfGradients ? 1 : static_cast<double>(sent.steps);
  for (uint64_t i = 0; i < parameters_; ++i) StepParameter(i, sent.values[i] / steps, rate, 1);
  for (uint64_t i = parameters_; i < values_.size(); ++i) values_[i] -= sent.values[i] / groups;
}

void ReferenceBlock::StepTogether(const std::vector<ReferenceSent>& sent, size_t live, uint64_t interval) {
  ++updates_;
  double steps = 0;
  uint64_t furthest = 1;
  for (const ReferenceSent& each : sent) {
    steps += static_cast<double>(each.steps);
    furthest = std::max(furthest, each.sequence);
  }
  const bool distances = rule_.mixing == ReferenceMixing::kMeanOfDistances;
  const double contributors = static_cast<double>(sent.size());
  const double share = distances ? contributors / static_cast<double>(live) : 1;
  const double w = distances ? std::min(1.0, share * (steps / contributors) / static_cast<double>(interval)) : 1;
  const double factor = FactorAt(furthest);
  for (uint64_t i = 0; i < values_.size(); ++i) {
    double sum = 0;       // The sum of all distances times their steps.
    double gradient = 0;  // The sum of all gradients.
    for (const ReferenceSent& each : sent) {
      sum += static_cast<double>(each.steps) * each.values[i];
      gradient += each.values[i];
    }
    if (i >= parameters_) {
      values_[i] -= share * sum / steps;
    } else if (distances) {
      StepParameter(i, share * sum / steps / (rule_.over_factor ? factor : 1), rule_.rate * factor, w);
    } else {
      StepParameter(i, gradient / steps, rule_.rate * factor, w);
    }
  }
}

void ReferenceBlock::BeginGeneration(uint64_t first_step, double first_epoch, uint64_t steps_per_epoch) {
  first_step_ = first_step;
  first_epoch_ = first_epoch;
  steps_per_epoch_ = steps_per_epoch;
}

double ReferenceBlock::FactorAt(uint64_t sequence) const {
  if (!rule_.cosine) return 1;
  const double epoch =
      first_epoch_ + static_cast<double>(sequence - 1 - first_step_) / static_cast<double>(steps_per_epoch_);
  return 0.1 + 0.9 * (1 + std::cos(std::acos(-1.0) * epoch / kReferenceEpochs)) / 2;
}

void ReferenceBlock::StepParameter(uint64_t i, double gradient, double rate, double w) {
  double& c = values_[i];
  double& v = first_[i];
  if (rule_.adam) {
    const double number = static_cast<double>(updates_);
    v = 0.9 * v + 0.1 * gradient;
    second_[i] = 0.999 * second_[i] + 0.001 * gradient * gradient;
    const double root = std::sqrt(second_[i] / (1 - std::pow(0.999, number)));
    c -= rate * v / (1 - std::pow(0.9, number)) / (root + 1e-3);
    return;
  }
  // With w = 1 this is ordinary momentum: v <- m v + g, then c <- c - rate v or, with Nesterov, c - rate (g + m v).
  const double m = rule_.momentum;
  const double decay = std::pow(m, w);
  const double push = m * (1 - decay) / (1 - m);
  c -= rate * (rule_.nesterov ? (1 + m) * gradient + m * push * v : gradient + push * v);
  v = decay * v + gradient;
}

}  // namespace hooke
