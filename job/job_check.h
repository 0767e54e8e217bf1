#ifndef HOOKE_JOB_JOB_CHECK_H_
#define HOOKE_JOB_JOB_CHECK_H_

// May a job be taken? The client asks before it sends one, the coordinator before it stores one. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "job/job_keys.h"
#include "job/job_relations.h"
#include "proto/job.pb.h"

namespace hooke {

struct JobProblem {
  std::string key;                 // As a job file spells it: "train.epochs".
  std::string message;             // What is wrong and what is allowed, escaped: "0 is out of range; must be ...".
  std::vector<std::string> about;  // The keys on whose values it rests; `key` is one of them.
};

// Every problem that rests on no other, in the order of the keys: values out of range first, then values that do not go
// together. Empty: the job may be taken.
std::vector<JobProblem> CheckJob(const v1::JobSpec& job);

// Whether a key means anything in this job: whether the key of its `only_with` has one of the values named there.
bool Applies(const JobKey& key, const v1::JobSpec& job);

// The key and the values of its `only_with`. The key must have one.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};
Condition ConditionOf(const JobKey& key);

// "does not apply to averaging.rule async; only to bmuf, slowmo and diloco", where the condition's key is "async".
std::string DoesNotApplyText(const Condition& condition, absl::string_view actual);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_CHECK_H_
