#ifndef HOOKE_JOB_JOB_RELATIONS_H_
#define HOOKE_JOB_JOB_RELATIONS_H_

// The relations between the values of a job's keys, as one table. CheckJob and the maker of docs/job-file.md use it. If
// a key applies only with some values of another key, that is in the table of keys instead (JobKey::only_with).

#include <string>
#include <vector>

namespace hooke {

enum class Need {
  kOneOf,     // The value of `other` is one of `others`.
  kNotGiven,  // `other` has a value that means "not used" (JobKey::unused).
  // The job file does not give `other`. The reader of the job file checks this, because a JobSpec has every default
  // filled in.
  kNotBoth,
  kAboveZero,  // `other` is above 0.
  kBelow,      // The value is below `other`, or below other / divided_by if that is set.
  kAtMost,     // The value is at most `other`. It holds if the job does not use `other`.
  kAtLeast,    // The value is at least `other`.
  kDivides,    // `other` is a multiple of the value.
  kTimes,      // The value times that of `other` is at most `product_max`.
};

struct JobRelation {
  std::string key;                  // The key whose value sets a condition on another key. A problem names this key.
  std::vector<std::string> values;  // The values of `key` that set the condition. Empty: all values that use the key.
  Need need;
  std::string other;
  std::vector<std::string> others;  // For Need::kOneOf.
  std::string divided_by;           // For Need::kBelow: a key, or empty.
  double product_max = 0;           // For Need::kTimes.
  std::string unless;               // A key, or empty. If the job uses this key, the relation does not apply.
  std::string why;                  // For Need::kOneOf: completes "VALUE does not apply to OTHER VALUE, ...".
  std::string remedy;               // The advice to the user.
};

const std::vector<JobRelation>& JobRelations();

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_RELATIONS_H_
