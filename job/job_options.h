#ifndef HOOKE_JOB_JOB_OPTIONS_H_
#define HOOKE_JOB_JOB_OPTIONS_H_

// Converts the messages of a job to the options of algorithms/. Servers and ranks call the same functions, so both ends
// of an exchange mean the same. Pure.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "algorithms/compression.h"
#include "algorithms/learning_rate.h"
#include "algorithms/optimizer.h"
#include "algorithms/rule_facts.h"
#include "job/job_keys.h"
#include "proto/job.pb.h"

namespace hooke {

// Each Read... refuses an enum's number that it does not know, with INVALID_ARGUMENT: "optimizer.name is 7; SGD (1),
// ... are allowed". Numbers are not checked: CheckOptimizer, CheckLearningRate and CheckEncoding do that.

absl::StatusOr<RuleName> ReadRule(uint32_t rule);

// Fields of other optimizers than the named one are not looked at.
absl::StatusOr<OptimizerOptions> ReadOptimizer(const v1::OptimizerSpec& spec);

// The learning rate is the optimizer's; `epochs` are the passes over the data that the job makes.
absl::StatusOr<LearningRateOptions> ReadLearningRate(const v1::ScheduleSpec& spec, const v1::OptimizerSpec& optimizer,
                                                     uint32_t epochs);

// How groups encode what they send. `compression` is a number of AveragingSpec.Compression; 0 means none. `top_k` is
// the part of the values that COMPRESSION_TOP_K sends, and is checked: above 0 to 1.
absl::StatusOr<Encoding> ReadEncoding(uint32_t compression, double top_k);

// The range that the table of keys allows for a kInteger or kNumber.
KeyRange RangeOf(absl::string_view path);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_OPTIONS_H_
