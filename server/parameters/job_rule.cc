#include "server/parameters/job_rule.h"

#include <cmath>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "algorithms/group_rule.h"
#include "proto/job.pb.h"

namespace hooke {
namespace {

constexpr double kMaxGraceSeconds = 10;
constexpr uint32_t kMaxFragments = 64;

absl::Status CheckNumber(absl::string_view field, double value, double most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("job.", field, " is ", value, "; 0 to ", most, " is allowed"));
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
          absl::StrCat("job.optimizer.name is ", spec.name(), "; SGD (1), ADAM (2) and ADAMW (3) are allowed"));
  }
}

absl::StatusOr<ScheduleOptions> ReadSchedule(const v1::JobSpecForShard& job) {
  const v1::ScheduleSpec& spec = job.schedule();
  ScheduleOptions options;
  options.learning_rate = job.optimizer().learning_rate();
  options.total_epochs = job.epochs();
  options.warmup_epochs = spec.warmup_epochs();
  switch (spec.name()) {
    case v1::ScheduleSpec::CONSTANT:
      return options;
    case v1::ScheduleSpec::STEP:
      options.name = ScheduleName::kStep;
      options.step_epochs = spec.step_epochs();
      options.step_factor = spec.step_factor();
      return options;
    case v1::ScheduleSpec::COSINE:
      options.name = ScheduleName::kCosine;
      options.final_fraction = spec.final_fraction();
      return options;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("job.schedule.name is ", spec.name(), "; CONSTANT (1), STEP (2) and COSINE (3) are allowed"));
  }
}

absl::StatusOr<Encoding> ReadEncoding(const v1::JobSpecForShard& job, RuleName rule) {
  if (job.compression() > kCompressionMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.compression is ", job.compression(), "; 0 to ", kCompressionMax, " are allowed"));
  }
  Encoding encoding;
  if (job.compression() > 0) encoding.compression = static_cast<Compression>(job.compression());
  if (encoding.compression != Compression::kTopK) return encoding;
  if (!(job.top_k() > 0 && job.top_k() <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("job.top_k is ", job.top_k(), "; above 0 to 1 is allowed"));
  }
  if (rule == RuleName::kElastic || rule == RuleName::kNone) {
    return absl::InvalidArgumentError(
        "job.compression is top_k; with rules elastic and none, whose groups send all their parameters, it is not "
        "allowed");
  }
  encoding.top_k = TopKOf(job.top_k());
  return encoding;
}

// What a rule needs that steps the center by an optimizer.
absl::Status ReadStep(const v1::JobSpecForShard& job, UpdateRuleOptions* options) {
  const bool may_vary = !SendsGradients(options->rule);
  if (absl::Status status = CheckRange("interval", job.interval(), UINT32_MAX); !may_vary && !status.ok())
    return status;
  if (absl::Status status = CheckRange("steps_per_epoch", job.steps_per_epoch(), UINT64_MAX); !status.ok())
    return status;
  if (absl::Status status = CheckNumber("grace_seconds", job.grace_seconds(), kMaxGraceSeconds); !status.ok())
    return status;
  if (job.fragments() > kMaxFragments) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.fragments is ", job.fragments(), "; 0 to ", kMaxFragments, " are allowed"));
  }
  absl::StatusOr<OptimizerOptions> optimizer = ReadOptimizer(job.optimizer());
  if (!optimizer.ok()) return optimizer.status();
  absl::StatusOr<ScheduleOptions> schedule = ReadSchedule(job);
  if (!schedule.ok()) return schedule.status();
  options->optimizer = *optimizer;
  options->schedule = *schedule;
  options->groups = job.groups();
  options->staleness_bound = job.staleness_bound();
  options->staleness_power = job.staleness_power();
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRange(absl::string_view field, uint64_t value, uint64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("job.", field, " is ", value, "; 1 to ", most, " are allowed"));
}

absl::StatusOr<JobRule> ReadJobRule(const v1::JobSpecForShard& job) {
  const std::optional<RuleName> name = RuleOf(job.rule());
  if (!name.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.rule is ", job.rule(), "; ELASTIC (1) to DILOCO (10) are allowed"));
  }
  if (!std::isfinite(job.alpha())) return absl::InvalidArgumentError("job.alpha is not a finite number");
  JobRule read;
  read.options.rule = *name;
  read.options.alpha = job.alpha();
  const bool steps = *name != RuleName::kElastic && *name != RuleName::kNone;
  if (steps) {
    if (absl::Status status = ReadStep(job, &read.options); !status.ok()) return status;
    read.round.grace = absl::Seconds(job.grace_seconds());
  }
  absl::StatusOr<Encoding> sent = ReadEncoding(job, *name);
  if (!sent.ok()) return sent.status();
  read.sent = *sent;
  // Differences are, by the one rule that answers with them.
  read.options.answers = AnswerEncoding(read.sent, /*answers_center=*/false);
  absl::StatusOr<std::unique_ptr<UpdateRule>> rule = MakeUpdateRule(read.options);
  if (!rule.ok()) return rule.status();
  read.traits = (*rule)->traits();
  read.answered = AnswerEncoding(read.sent, read.traits.answers_center);
  if (!read.traits.in_rounds) return read;
  read.round.quorum = job.quorum();
  if (job.quorum() <= job.groups()) return read;
  return absl::InvalidArgumentError(
      absl::StrCat("job.quorum is ", job.quorum(), "; 0 to ", job.groups(), " are allowed"));
}

}  // namespace hooke
