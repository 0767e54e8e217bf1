#include "server/parameters/job_rule.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "algorithms/rule_facts.h"
#include "proto/job.pb.h"

namespace hooke {
namespace {

v1::JobSpecForShard JobWith(const RuleFacts& facts) {
  v1::JobSpecForShard job;
  job.set_rule(static_cast<v1::AveragingSpec::Rule>(facts.rule));
  job.set_alpha(0.5);
  job.set_groups(1);
  job.set_interval(1);
  job.set_epochs(1);
  job.set_steps_per_epoch(1);
  job.set_staleness_bound(1);
  job.mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
  job.mutable_optimizer()->set_learning_rate(1);
  job.mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  return job;
}

// Top-k drops most values. A rule whose groups send all their parameters refuses it by its own name. Other rules take
// it.
TEST(JobRuleTest, TopKGoesWithRulesThatAnswerWithTheCenter) {
  for (const RuleFacts& facts : AllRules()) {
    v1::JobSpecForShard job = JobWith(facts);
    EXPECT_EQ(ReadJobRule(job).status(), absl::OkStatus()) << facts.name;
    job.set_compression(v1::AveragingSpec::COMPRESSION_TOP_K);
    job.set_top_k(0.5);
    const absl::Status refused =
        absl::InvalidArgumentError(absl::StrCat("job.compression is top_k; with rule ", facts.name,
                                                ", whose groups send all their parameters, it is not allowed"));
    EXPECT_EQ(ReadJobRule(job).status(), AnswersWithCenter(facts.rule) ? absl::OkStatus() : refused) << facts.name;
  }
}

}  // namespace
}  // namespace hooke
