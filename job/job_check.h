#ifndef HOOKE_JOB_JOB_CHECK_H_
#define HOOKE_JOB_JOB_CHECK_H_

// Checks whether a job may be taken. The client asks before it sends a job, the coordinator before it stores one. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "job/job_keys.h"
#include "job/job_relations.h"
#include "proto/job.pb.h"

namespace hooke {

struct JobProblem {
  std::string key;                 // As in a job file: "train.epochs".
  std::string message;             // The fault and the allowed values, escaped: "0 is out of range; must be ...".
  std::vector<std::string> about;  // The keys whose values cause the problem; `key` is one of them.
};

// Returns the job's problems, in the order of the keys: first values out of range, then values that do not go together.
// A problem that follows from an earlier one is left out. Empty: the job may be taken.
std::vector<JobProblem> CheckJob(const v1::JobSpec& job);

// Whether the key has a meaning in this job: true if `only_with` is empty or the job fulfills it.
bool Applies(const JobKey& key, const v1::JobSpec& job);

// The parts of `only_with`: the other key and its values. The key must have an `only_with`.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};
Condition ConditionOf(const JobKey& key);

// Example: "does not apply to averaging.rule async; only to bmuf, slowmo and diloco". Here "async" is `actual`, the
// job's value of the condition's key.
std::string DoesNotApplyText(const Condition& condition, absl::string_view actual);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_CHECK_H_
