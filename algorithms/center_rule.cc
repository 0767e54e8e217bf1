#include "algorithms/center_rule.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/center_step.h"
#include "algorithms/elastic.h"

namespace hooke {
namespace {

// The traits that follow from the rule alone, not from a job's options.
RuleTraits TraitsOf(const RuleFacts& facts) {
  RuleTraits traits;
  traits.in_rounds = facts.pace == RulePace::kInRounds;
  // A gradient belongs to the point where it was taken, so servers drop a late one. A distance stands for its steps
  // wherever it began.
  traits.drops_late = traits.in_rounds && facts.sends == RuleSends::kGradients;
  traits.answers_center = AnswersWithCenter(facts.rule);
  traits.averages = facts.sends == RuleSends::kParameters;
  return traits;
}

class ElasticRule : public CenterRule {
 public:
  ElasticRule(double alpha, const Encoding& answers) : alpha_(alpha), answers_(answers) {}

  const char* name() const override { return FactsOf(RuleName::kElastic).name; }
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
  const RuleTraits traits_ = TraitsOf(FactsOf(RuleName::kElastic));
};

// The rule none: the center becomes what the group sent, and the answer leaves the group unchanged.
class NoneRule : public CenterRule {
 public:
  const char* name() const override { return FactsOf(RuleName::kNone).name; }
  const RuleTraits& traits() const override { return traits_; }

  void Apply(absl::Span<const Contribution> from, const CenterBlock& block, absl::Span<float> answer) const override {
    std::copy(from.front().values.begin(), from.front().values.end(), block.values.begin());
    std::fill(answer.begin(), answer.end(), 0.0f);
  }

 private:
  const RuleTraits traits_ = TraitsOf(FactsOf(RuleName::kNone));
};

Mixing MixingOf(const RuleFacts& facts) {
  if (facts.sends == RuleSends::kDistances) return Mixing::kWeightedMean;
  return facts.steps_locally ? Mixing::kSum : Mixing::kMeanOfSums;
}

// Returns the options of a rule that answers with the center.
absl::StatusOr<CenterStepOptions> StepOf(const RuleFacts& facts, const CenterRuleOptions& options) {
  CenterStepOptions step;
  step.name = facts.name;
  step.mixing = MixingOf(facts);
  step.traits = TraitsOf(facts);
  step.relative_to_rate = facts.relative_to_rate;
  if (facts.pace == RulePace::kInRounds) return step;
  step.staleness_power = options.staleness_power;
  // Each group gathers buffer statistics of the same data. With this share, all groups together move the center by the
  // mean of their distances.
  step.buffer_share = 1.0 / options.groups;
  if (facts.pace != RulePace::kBounded) return step;
  step.traits.staleness_bound = options.staleness_bound;
  if (options.staleness_bound >= 1) return step;
  return absl::InvalidArgumentError(absl::StrCat(facts.name, " rule: staleness_bound is 0; allowed is 1 or more"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CenterRule>> MakeCenterRule(const CenterRuleOptions& options) {
  if (!RuleOf(static_cast<uint32_t>(options.rule)).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("update rule number ", static_cast<int>(options.rule), " is not known"));
  }
  const RuleFacts& facts = FactsOf(options.rule);
  if (!facts.shares) return std::make_unique<NoneRule>();
  if (!AnswersWithCenter(options.rule)) {
    // Written so that NaN is refused, too.
    if (options.alpha > 0 && options.alpha < 1) return std::make_unique<ElasticRule>(options.alpha, options.answers);
    return absl::InvalidArgumentError(
        absl::StrCat("elastic rule: alpha is ", options.alpha, "; allowed is 0 < alpha < 1"));
  }
  absl::StatusOr<CenterStepOptions> step = StepOf(facts, options);
  if (!step.ok()) return step.status();
  if (absl::Status status = CheckOptimizer(options.optimizer); !status.ok()) return status;
  if (absl::Status status = CheckLearningRate(options.schedule); !status.ok()) return status;
  if (options.groups < 1) return absl::InvalidArgumentError(absl::StrCat(step->name, " rule: groups is 0"));
  if (!(options.staleness_power >= 0 && options.staleness_power <= kStalenessPowerMax)) {
    return absl::InvalidArgumentError(absl::StrCat(step->name, " rule: staleness_power is ", options.staleness_power,
                                                   "; allowed is 0 to ", kStalenessPowerMax));
  }
  step->optimizer = options.optimizer;
  step->schedule = options.schedule;
  return MakeCenterStep(*step);
}

}  // namespace hooke
