#include "server/parameters/job_rule.h"

#include <cmath>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "algorithms/rule_facts.h"
#include "job/job_options.h"

namespace hooke {
namespace {

absl::Status CheckNumber(absl::string_view field, double value, double most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("job.", field, " is ", value, "; 0 to ", most, " is allowed"));
}

// Returns OK if a whole number, which may be 0, is at most the limit in the table of job keys.
absl::Status CheckAtMost(absl::string_view field, uint64_t value) {
  const auto most = static_cast<uint64_t>(RangeOf(absl::StrCat("averaging.", field)).max);
  if (value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("job.", field, " is ", value, "; 0 to ", most, " are allowed"));
}

// Prefixes the field in a refusal, such as "optimizer.name", with "job.", because it is a field of JobSpecForShard.
absl::Status InJob(const absl::Status& refused) {
  return absl::Status(refused.code(), absl::StrCat("job.", refused.message()));
}

absl::StatusOr<Encoding> ReadShardEncoding(const v1::JobSpecForShard& job, RuleName rule) {
  absl::StatusOr<Encoding> encoding = ReadEncoding(job.compression(), job.top_k());
  if (!encoding.ok()) return InJob(encoding.status());
  if (encoding->compression == Compression::kTopK && !AnswersWithCenter(rule)) {
    return absl::InvalidArgumentError(absl::StrCat("job.compression is top_k; with rule ", FactsOf(rule).name,
                                                   ", whose groups send all their parameters, it is not allowed"));
  }
  return encoding;
}

// Reads and checks the options of rules that step the center with an optimizer.
absl::Status ReadStep(const v1::JobSpecForShard& job, CenterRuleOptions* options) {
  const bool may_vary = !SendsGradients(options->rule);
  if (absl::Status status = CheckRange("interval", job.interval(), UINT32_MAX); !may_vary && !status.ok())
    return status;
  if (absl::Status status = CheckRange("steps_per_epoch", job.steps_per_epoch(), UINT64_MAX); !status.ok())
    return status;
  if (absl::Status status = CheckNumber("grace_seconds", job.grace_seconds(), RangeOf("averaging.grace_seconds").max);
      !status.ok())
    return status;
  if (absl::Status status = CheckAtMost("fragments", job.fragments()); !status.ok()) return status;
  if (absl::Status status = CheckAtMost("staleness_bound", job.staleness_bound()); !status.ok()) return status;
  absl::StatusOr<OptimizerOptions> optimizer = ReadOptimizer(job.optimizer());
  if (!optimizer.ok()) return InJob(optimizer.status());
  absl::StatusOr<LearningRateOptions> schedule = ReadLearningRate(job.schedule(), job.optimizer(), job.epochs());
  if (!schedule.ok()) return InJob(schedule.status());
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
  const absl::StatusOr<RuleName> name = ReadRule(job.rule());
  if (!name.ok()) return InJob(name.status());
  if (!std::isfinite(job.alpha())) return absl::InvalidArgumentError("job.alpha is not a finite number");
  JobRule read;
  read.options.rule = *name;
  read.options.alpha = job.alpha();
  if (AnswersWithCenter(*name)) {
    if (absl::Status status = ReadStep(job, &read.options); !status.ok()) return status;
    read.round.grace = absl::Seconds(job.grace_seconds());
  }
  absl::StatusOr<Encoding> sent = ReadShardEncoding(job, *name);
  if (!sent.ok()) return sent.status();
  read.sent = *sent;
  // Only rules that answer with differences use this encoding.
  read.options.answers = AnswerEncoding(read.sent, /*answers_center=*/false);
  absl::StatusOr<std::unique_ptr<CenterRule>> rule = MakeCenterRule(read.options);
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
