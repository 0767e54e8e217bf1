#ifndef HOOKE_JOB_JOB_OPTIONS_H_
#define HOOKE_JOB_JOB_OPTIONS_H_

// Converts the messages of a job to the options of algorithms/. Servers and ranks call the same functions, so both
// compute with the same options. Pure.

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

// The functions below refuse an enum's number that they do not know with INVALID_ARGUMENT: "optimizer.name is 7; SGD
// (1), ... are allowed". They do not check ranges of numbers, except of `top_k`: CheckOptimizer and CheckLearningRate
// do.

absl::StatusOr<RuleName> ReadRule(uint32_t rule);

// Returns the options of the named optimizer, and ignores fields of other optimizers.
absl::StatusOr<OptimizerOptions> ReadOptimizer(const v1::OptimizerSpec& spec);

// Returns the schedule's options. The learning rate comes from `optimizer`; `epochs` are the passes over the data that
// the job makes.
absl::StatusOr<LearningRateOptions> ReadLearningRate(const v1::ScheduleSpec& spec, const v1::OptimizerSpec& optimizer,
                                                     uint32_t epochs);

// Returns how groups encode what they send. `compression` is a number of AveragingSpec.Compression; 0 means none.
// `top_k` is the fraction of the values that COMPRESSION_TOP_K sends. It must be above 0 and at most 1; other values
// give INVALID_ARGUMENT.
absl::StatusOr<Encoding> ReadEncoding(uint32_t compression, double top_k);

// Returns the range of a kInteger or kNumber key from the table of keys.
KeyRange RangeOf(absl::string_view path);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_OPTIONS_H_
