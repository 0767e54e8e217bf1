#ifndef HOOKE_JOB_YAML_FILE_PROBLEMS_H_
#define HOOKE_JOB_YAML_FILE_PROBLEMS_H_

// What is wrong with a job file, as lines for people. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

struct LineProblem {
  int line;
  std::string text;  // "KEY: the fault".
};

// Returns one line for each of the first problems, in the order of the file, and a line with the number of further
// ones.
std::string ProblemsText(absl::string_view file, std::vector<LineProblem> problems, uint64_t left_out = 0);

// Returns the line of a key. If the file does not have the key, it is the line of the innermost section around it, or
// 1.
int LineOfKey(const std::map<std::string, int>& lines, absl::string_view path);

}  // namespace hooke

#endif  // HOOKE_JOB_YAML_FILE_PROBLEMS_H_
