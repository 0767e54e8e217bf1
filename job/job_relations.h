#ifndef HOOKE_JOB_JOB_RELATIONS_H_
#define HOOKE_JOB_JOB_RELATIONS_H_

// What the values of a job's keys ask of one another: one table, from which jobs are checked and docs/job-file.md is
// made. That a key applies only with some values of another one says the table of keys itself (JobKey::only_with).

#include <string>
#include <vector>

namespace hooke {

enum class Need {
  kOneOf,      // `other` has one of `values`.
  kNotGiven,   // `other` is not used (JobKey::unused).
  kNotBoth,    // `other` is not in the job file. A job has every default: who reads the file asks this.
  kAboveZero,  // `other` is above 0.
  kBelow,      // The value is below `other`; where `divided_by` is set, below that part of it.
  kAtMost,     // The value is at most `other`.
  kDivides,    // The value divides `other` without a rest.
};

struct JobRelation {
  std::string key;                  // Its value needs something; a problem is told of this key.
  std::vector<std::string> values;  // Only these values of `key` need it. Empty: all that use the key.
  Need need;
  std::string other;
  std::vector<std::string> others;  // Need::kOneOf.
  std::string divided_by;           // Need::kBelow: a key, or empty.
  std::string unless;               // Where this key is used, nothing is needed; or empty.
  std::string why;                  // Completes "KEY VALUE does not go with OTHER VALUE, ...".
  std::string remedy;               // What the user can do.
};

const std::vector<JobRelation>& JobRelations();

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_RELATIONS_H_
