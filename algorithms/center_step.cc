#include "algorithms/center_step.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/base/macros.h"

namespace hooke {
namespace {

// With relative_to_rate, a factor of the schedule below this counts as this, both for dividing distances and for the
// optimizer's step. A schedule that starts or ends at 0 would otherwise divide distances by 0.
constexpr double kLeastRate = 0.01;

// Scale computes to = factor * from; AddScaled computes to += factor * from.
void Scale(float factor, absl::Span<const float> from, absl::Span<float> to) {
  const float* __restrict in = from.data();
  float* __restrict out = to.data();
  for (size_t i = 0, n = to.size(); i < n; ++i) out[i] = factor * in[i];
}

void AddScaled(float factor, absl::Span<const float> from, absl::Span<float> to) {
  const float* __restrict in = from.data();
  float* __restrict out = to.data();
  for (size_t i = 0, n = to.size(); i < n; ++i) out[i] += factor * in[i];
}

void Subtract(absl::Span<const float> from, absl::Span<float> to) {
  const float* __restrict in = from.data();
  float* __restrict out = to.data();
  for (size_t i = 0, n = to.size(); i < n; ++i) out[i] -= in[i];
}

class CenterStep : public CenterRule {
 public:
  explicit CenterStep(const CenterStepOptions& options) : options_(options) {
    options_.traits.state_values = OptimizerStateValues(options.optimizer);
  }

  const char* name() const override { return options_.name; }
  const RuleTraits& traits() const override { return options_.traits; }

  // `answer` holds the gradient until the center has made its step.
  void Apply(absl::Span<const Contribution> from, const CenterBlock& block, absl::Span<float> answer) const override {
    ABSL_ASSERT(!from.empty() && answer.size() == block.values.size());
    const absl::Span<float> gradient = answer.first(block.parameters);
    const absl::Span<float> buffers = answer.subspan(block.parameters);
    const double peak = options_.schedule.learning_rate;
    double rate = LearningRate(options_.schedule, block.epoch);
    if (options_.relative_to_rate) rate = std::max(rate, kLeastRate * peak);
    const double scale = options_.relative_to_rate ? 1 / (rate / peak) : 1;
    double steps = 0;
    double weights = 0;
    for (const Contribution& each : from) {
      steps += static_cast<double>(each.steps);
      weights += WeightOf(each);
    }
    const RoundPart part = PartOf(from.size(), steps, block.whole);
    bool first = true;
    for (const Contribution& each : from) {
      const double own = WeightOf(each) / weights;
      const float factor = static_cast<float>(scale * part.of_groups * Factor(each, weights));
      const float share = static_cast<float>(options_.traits.in_rounds ? part.of_groups * own : options_.buffer_share);
      const auto put = first ? Scale : AddScaled;
      put(factor, each.values.first(block.parameters), gradient);
      put(share, each.values.subspan(block.parameters), buffers);
      first = false;
    }
    const double stale = std::pow(1 + static_cast<double>(from.front().staleness), -options_.staleness_power);
    StepOptimizer(options_.optimizer, {rate * stale, block.update, part.of_steps}, gradient,
                  block.state.first(block.parameters * options_.traits.state_values),
                  block.values.first(block.parameters));
    Subtract(buffers, block.values.subspan(block.parameters));
    std::copy(block.values.begin(), block.values.end(), answer.begin());
  }

 private:
  // The fractions of a whole round (WholeRound) that this round is.
  struct RoundPart {
    double of_groups = 1;
    double of_steps = 1;  // This round's share of the steps that all groups make in an interval.
  };
  RoundPart PartOf(size_t groups, double steps, const WholeRound& whole) const {
    if (options_.mixing != Mixing::kWeightedMean) return {};
    const double contributors = static_cast<double>(groups);
    RoundPart part;
    part.of_groups = contributors / std::max<double>(contributors, whole.groups);
    part.of_steps = part.of_groups;
    if (whole.interval > 0) {
      const double made = steps / contributors / static_cast<double>(whole.interval);
      part.of_steps = std::min(1.0, part.of_groups * made);
    }
    return part;
  }

  static double WeightOf(const Contribution& from) { return static_cast<double>(from.steps) * from.samples; }

  // The factor of a contribution in a round whose contributions together weigh `weights`.
  double Factor(const Contribution& from, double weights) const {
    switch (options_.mixing) {
      case Mixing::kMeanOfSums:
        return from.samples / weights;
      case Mixing::kWeightedMean:
        return WeightOf(from) / weights;
      case Mixing::kSum:
        break;
    }
    return 1;
  }

  CenterStepOptions options_;
};

}  // namespace

std::unique_ptr<CenterRule> MakeCenterStep(const CenterStepOptions& options) {
  return std::make_unique<CenterStep>(options);
}

}  // namespace hooke
