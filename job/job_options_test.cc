#include "job/job_options.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/rule_facts.h"
#include "job/job_keys.h"
#include "proto/job.pb.h"

namespace hooke {
namespace {

// Every number of a rule that a job file can name is accepted, and the next number is refused.
TEST(JobOptionsTest, EveryRuleIsKnown) {
  const size_t rules = FindJobKey("averaging.rule")->choices.size();
  for (uint32_t number = 1; number <= rules; ++number) EXPECT_TRUE(ReadRule(number).ok()) << number;
  const RuleFacts& last = AllRules()[rules - 1];
  EXPECT_EQ(ReadRule(rules + 1).status().message(),
            absl::StrCat("rule is ", rules + 1, "; 1 (elastic) to ", rules, " (", last.name, ") are allowed"));
  EXPECT_FALSE(ReadRule(0).ok());
}

// Only the named optimizer's own fields reach the options.
TEST(JobOptionsTest, Optimizers) {
  v1::OptimizerSpec spec;
  spec.set_momentum(0.9);
  spec.set_nesterov(true);
  spec.set_weight_decay(0.5);
  spec.set_beta1(0.25);
  spec.set_beta2(0.125);
  spec.set_epsilon(1e-3);
  spec.set_name(v1::OptimizerSpec::SGD);
  const OptimizerOptions sgd = *ReadOptimizer(spec);
  EXPECT_EQ(sgd.name, OptimizerName::kSgd);
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_TRUE(sgd.nesterov);
  EXPECT_EQ(sgd.weight_decay, 0.5);
  EXPECT_EQ(sgd.beta1, OptimizerOptions().beta1);
  for (const auto name : {v1::OptimizerSpec::ADAM, v1::OptimizerSpec::ADAMW}) {
    spec.set_name(name);
    const OptimizerOptions adam = *ReadOptimizer(spec);
    EXPECT_EQ(adam.name, name == v1::OptimizerSpec::ADAM ? OptimizerName::kAdam : OptimizerName::kAdamW);
    EXPECT_EQ(adam.momentum, 0);
    EXPECT_FALSE(adam.nesterov);
    EXPECT_EQ(adam.beta1, 0.25);
    EXPECT_EQ(adam.beta2, 0.125);
    EXPECT_EQ(adam.epsilon, 1e-3);
  }
  spec.set_name(static_cast<v1::OptimizerSpec::Name>(7));
  EXPECT_EQ(ReadOptimizer(spec).status(),
            absl::InvalidArgumentError("optimizer.name is 7; SGD (1), ADAM (2) and ADAMW (3) are allowed"));
}

TEST(JobOptionsTest, Schedules) {
  v1::OptimizerSpec optimizer;
  optimizer.set_learning_rate(0.5);
  v1::ScheduleSpec spec;
  spec.set_warmup_epochs(2);
  spec.set_step_epochs(3);
  spec.set_step_factor(0.25);
  spec.set_final_fraction(0.125);
  spec.set_name(v1::ScheduleSpec::STEP);
  const LearningRateOptions step = *ReadLearningRate(spec, optimizer, 12);
  EXPECT_EQ(step.name, LearningRateName::kStep);
  EXPECT_EQ(step.learning_rate, 0.5);
  EXPECT_EQ(step.total_epochs, 12);
  EXPECT_EQ(step.warmup_epochs, 2);
  EXPECT_EQ(step.step_epochs, 3);
  EXPECT_EQ(step.step_factor, 0.25);
  EXPECT_EQ(step.final_fraction, 0);
  spec.set_name(v1::ScheduleSpec::COSINE);
  EXPECT_EQ(ReadLearningRate(spec, optimizer, 12)->final_fraction, 0.125);
  spec.set_name(v1::ScheduleSpec::CONSTANT);
  EXPECT_EQ(ReadLearningRate(spec, optimizer, 12)->name, LearningRateName::kConstant);
  spec.set_name(v1::ScheduleSpec::NAME_UNSPECIFIED);
  EXPECT_EQ(ReadLearningRate(spec, optimizer, 12).status(),
            absl::InvalidArgumentError("schedule.name is 0; CONSTANT (1), STEP (2) and COSINE (3) are allowed"));
}

// Compression 0, which jobs stored by older versions have, means none. Only top_k uses the fraction top_k.
TEST(JobOptionsTest, Encodings) {
  EXPECT_EQ(ReadEncoding(0, 7)->compression, Compression::kNone);
  EXPECT_EQ(ReadEncoding(1, 7)->compression, Compression::kNone);
  EXPECT_EQ(ReadEncoding(4, 7)->compression, Compression::kInt8);
  EXPECT_EQ(ReadEncoding(6, 0.5)->compression, Compression::kTopK);
  EXPECT_EQ(ReadEncoding(6, 0.5)->top_k, TopKOf(0.5));
  EXPECT_EQ(ReadEncoding(6, 0).status().message(), "top_k is 0; above 0 to 1 is allowed");
  EXPECT_EQ(ReadEncoding(7, 0).status().message(), "compression is 7; 0 to 6 are allowed");
}

}  // namespace
}  // namespace hooke
