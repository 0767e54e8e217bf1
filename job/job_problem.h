#ifndef HOOKE_JOB_JOB_PROBLEM_H_
#define HOOKE_JOB_JOB_PROBLEM_H_

#include <string>
#include <vector>

namespace hooke {

// Why a job cannot be taken.
struct JobProblem {
  std::string key;                 // As in a job file: "train.epochs".
  std::string message;             // The fault and the allowed values, escaped: "0 is out of range; must be ...".
  std::vector<std::string> about;  // The keys whose values cause the problem; `key` is one of them.
};

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_PROBLEM_H_
