#ifndef HOOKE_JOB_JOB_CHECK_H_
#define HOOKE_JOB_JOB_CHECK_H_

// Checks whether the system can take a job. The client checks a job before it sends it, the coordinator before it
// stores it. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "job/job_keys.h"
#include "job/job_problem.h"
#include "job/job_relations.h"
#include "proto/job.pb.h"

namespace hooke {

// Returns the job's problems: first the wrong values, in the order of the keys, then the values that do not go
// together. A problem that follows from an earlier one is left out. An empty list means that the job can be taken.
std::vector<JobProblem> CheckJob(const v1::JobSpec& job);

// Whether `key` has a meaning in this job: its `only_with` is empty, or the job fulfills it.
bool Applies(const JobKey& key, const v1::JobSpec& job);

// The parts of JobKey::only_with: the other key, and what it must be.
struct Condition {
  enum class Need { kOneOf, kGiven, kNotGiven };
  std::string key;
  Need need = Need::kOneOf;
  std::vector<std::string> values;  // For kOneOf: the values, of which the other key must have one.
};
Condition ConditionOf(const JobKey& key);

// Whether the key applies only to jobs with a command, or only to jobs without one (JobKey::only_with). A JobSpec has
// such a key's field only if the key applies.
bool DependsOnCommand(const JobKey& key);

// Returns the reason why a key does not apply. Example: "does not apply to averaging.rule async; only to bmuf, slowmo
// and diloco". Here "async" is `actual`, the job's value of the condition's key; only kOneOf needs it.
std::string DoesNotApplyText(const Condition& condition, absl::string_view actual);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_CHECK_H_
