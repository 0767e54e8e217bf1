#include "job/job_options.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace hooke {

absl::StatusOr<RuleName> ReadRule(uint32_t rule) {
  if (const std::optional<RuleName> name = RuleOf(rule); name.has_value()) return *name;
  return absl::InvalidArgumentError(absl::StrCat("rule is ", rule, "; 1 (", AllRules().front().name, ") to ",
                                                 AllRules().size(), " (", AllRules().back().name, ") are allowed"));
}

absl::StatusOr<OptimizerOptions> ReadOptimizer(const v1::OptimizerSpec& spec) {
  OptimizerOptions options;
  options.weight_decay = spec.weight_decay();
  switch (spec.name()) {
    case v1::OptimizerSpec::SGD:
      options.momentum = spec.momentum();
      options.nesterov = spec.nesterov();
      return options;
    case v1::OptimizerSpec::ADAM:
    case v1::OptimizerSpec::ADAMW:
      options.name = spec.name() == v1::OptimizerSpec::ADAM ? OptimizerName::kAdam : OptimizerName::kAdamW;
      options.beta1 = spec.beta1();
      options.beta2 = spec.beta2();
      options.epsilon = spec.epsilon();
      return options;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer.name is ", spec.name(), "; SGD (1), ADAM (2) and ADAMW (3) are allowed"));
  }
}

absl::StatusOr<LearningRateOptions> ReadLearningRate(const v1::ScheduleSpec& spec, const v1::OptimizerSpec& optimizer,
                                                     uint32_t epochs) {
  LearningRateOptions options;
  options.learning_rate = optimizer.learning_rate();
  options.total_epochs = epochs;
  options.warmup_epochs = spec.warmup_epochs();
  switch (spec.name()) {
    case v1::ScheduleSpec::CONSTANT:
      return options;
    case v1::ScheduleSpec::STEP:
      options.name = LearningRateName::kStep;
      options.step_epochs = spec.step_epochs();
      options.step_factor = spec.step_factor();
      return options;
    case v1::ScheduleSpec::COSINE:
      options.name = LearningRateName::kCosine;
      options.final_fraction = spec.final_fraction();
      return options;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("schedule.name is ", spec.name(), "; CONSTANT (1), STEP (2) and COSINE (3) are allowed"));
  }
}

absl::StatusOr<Encoding> ReadEncoding(uint32_t compression, double top_k) {
  if (compression > kCompressionMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("compression is ", compression, "; 0 to ", kCompressionMax, " are allowed"));
  }
  Encoding encoding;
  if (compression > 0) encoding.compression = static_cast<Compression>(compression);
  if (encoding.compression != Compression::kTopK) return encoding;
  if (!(top_k > 0 && top_k <= RangeOf("averaging.top_k").max)) {
    return absl::InvalidArgumentError(absl::StrCat("top_k is ", top_k, "; above 0 to 1 is allowed"));
  }
  encoding.top_k = TopKOf(top_k);
  return encoding;
}

KeyRange RangeOf(absl::string_view path) { return FindJobKey(path)->range; }

}  // namespace hooke
