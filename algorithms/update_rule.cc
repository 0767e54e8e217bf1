#include "algorithms/update_rule.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/center_step.h"
#include "algorithms/elastic.h"

namespace hooke {
namespace {

RuleTraits PartOfTheWay() {
  RuleTraits traits;
  traits.averages = true;
  return traits;
}

class ElasticRule : public UpdateRule {
 public:
  ElasticRule(double alpha, const Encoding& answers) : alpha_(alpha), answers_(answers) {}

  const char* name() const override { return "elastic"; }
  const RuleTraits& traits() const override { return traits_; }

  void Apply(absl::Span<const Contribution> from, const CenterBlock& block, absl::Span<float> answer) const override {
    // Without rounding the answer, one pass over memory is enough.
    if (answers_.compression == Compression::kNone) {
      ElasticExchange(alpha_, from.front().values, block.values, answer);
      return;
    }
    ElasticDifference(alpha_, from.front().values, block.values, answer);
    RoundToEncoding(answers_, answer);
    MoveByAnswer(answer, block.values);
  }

 private:
  const double alpha_;
  const Encoding answers_;
  const RuleTraits traits_ = PartOfTheWay();
};

// The center becomes what the group sent; the group is not pulled.
class NoneRule : public UpdateRule {
 public:
  const char* name() const override { return "none"; }
  const RuleTraits& traits() const override { return traits_; }

  void Apply(absl::Span<const Contribution> from, const CenterBlock& block, absl::Span<float> answer) const override {
    std::copy(from.front().values.begin(), from.front().values.end(), block.values.begin());
    std::fill(answer.begin(), answer.end(), 0.0f);
  }

 private:
  const RuleTraits traits_ = PartOfTheWay();
};

// The traits of rules that apply the contributions of several groups together, in rounds.
CenterStepOptions Synchronous(const char* name, Mixing mixing) {
  CenterStepOptions step;
  step.name = name;
  step.mixing = mixing;
  step.traits.in_rounds = true;
  step.traits.answers_center = true;
  return step;
}

// The traits of rules that apply each group's contribution alone, as it comes.
CenterStepOptions Asynchronous(const char* name, Mixing mixing, const UpdateRuleOptions& options) {
  CenterStepOptions step;
  step.name = name;
  step.mixing = mixing;
  step.traits.answers_center = true;
  step.staleness_power = options.staleness_power;
  // Each of p groups has gathered buffer statistics over the same data. Together they move the center by the mean.
  step.buffer_share = 1.0 / options.groups;
  return step;
}

// The options that distinguish the rule. Must not be called for kElastic and kNone, which step no optimizer.
absl::StatusOr<CenterStepOptions> StepOf(const UpdateRuleOptions& options) {
  CenterStepOptions step;
  switch (options.rule) {
    case RuleName::kSync:
      step = Synchronous("sync", Mixing::kMeanOfSums);
      // A late gradient belongs to the old center. A late distance still counts for its steps, wherever it began.
      step.traits.drops_late = true;
      return step;
    case RuleName::kAsync:
      return Asynchronous("async", Mixing::kMeanOfSums, options);
    case RuleName::kSsp:
      step = Asynchronous("ssp", Mixing::kMeanOfSums, options);
      step.traits.staleness_bound = options.staleness_bound;
      if (options.staleness_bound >= 1) return step;
      return absl::InvalidArgumentError("ssp rule: staleness_bound is 0; allowed is 1 or more");
    case RuleName::kDownpour:
      return Asynchronous("downpour", Mixing::kSum, options);
    case RuleName::kAverage:
      return Synchronous("average", Mixing::kWeightedMean);
    case RuleName::kBmuf:
      return Synchronous("bmuf", Mixing::kWeightedMean);
    case RuleName::kSlowMo:
      step = Synchronous("slowmo", Mixing::kWeightedMean);
      step.relative_to_rate = true;
      return step;
    case RuleName::kDiLoCo:
      return Synchronous("diloco", Mixing::kWeightedMean);
    case RuleName::kElastic:
    case RuleName::kNone:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("update rule number ", static_cast<int>(options.rule), " is not known"));
}

}  // namespace

std::optional<RuleName> RuleOf(uint32_t number) {
  if (number < static_cast<uint32_t>(RuleName::kElastic) || number > static_cast<uint32_t>(RuleName::kDiLoCo)) {
    return std::nullopt;
  }
  return static_cast<RuleName>(number);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const UpdateRuleOptions& options) {
  if (options.rule == RuleName::kNone) return std::make_unique<NoneRule>();
  if (options.rule == RuleName::kElastic) {
    // Written so that it refuses NaN, too.
    if (options.alpha > 0 && options.alpha < 1) return std::make_unique<ElasticRule>(options.alpha, options.answers);
    return absl::InvalidArgumentError(
        absl::StrCat("elastic rule: alpha is ", options.alpha, "; allowed is 0 < alpha < 1"));
  }
  absl::StatusOr<CenterStepOptions> step = StepOf(options);
  if (!step.ok()) return step.status();
  if (absl::Status status = CheckOptimizer(options.optimizer); !status.ok()) return status;
  if (absl::Status status = CheckSchedule(options.schedule); !status.ok()) return status;
  if (options.groups < 1) return absl::InvalidArgumentError(absl::StrCat(step->name, " rule: groups is 0"));
  if (!(options.staleness_power >= 0 && options.staleness_power <= 4)) {
    return absl::InvalidArgumentError(
        absl::StrCat(step->name, " rule: staleness_power is ", options.staleness_power, "; allowed is 0 to 4"));
  }
  step->optimizer = options.optimizer;
  step->schedule = options.schedule;
  return MakeCenterStep(*step);
}

}  // namespace hooke
