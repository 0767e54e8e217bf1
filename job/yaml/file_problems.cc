#include "job/yaml/file_problems.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/job_refusal.h"
#include "job/visible_text.h"

namespace hooke {

std::string ProblemsText(absl::string_view file, std::vector<LineProblem> problems, uint64_t left_out) {
  absl::c_stable_sort(problems, [](const LineProblem& a, const LineProblem& b) { return a.line < b.line; });
  if (problems.size() > kProblemsListed) {
    left_out += problems.size() - kProblemsListed;
    problems.resize(kProblemsListed);
  }
  std::vector<std::string> lines;
  lines.reserve(problems.size() + 1);
  for (const LineProblem& problem : problems) {
    lines.push_back(absl::StrCat(Escaped(file), ":", problem.line, ": ", problem.text));
  }
  if (left_out > 0) {
    lines.push_back(
        absl::StrCat(Escaped(file), ": ", left_out, " more problem", left_out == 1 ? "" : "s", "; mend these first"));
  }
  return absl::StrJoin(lines, "\n");
}

int LineOfKey(const std::map<std::string, int>& lines, absl::string_view path) {
  while (true) {
    const auto found = lines.find(std::string(path));
    if (found != lines.end()) return found->second;
    const size_t dot = path.rfind('.');
    if (dot == path.npos) return 1;
    path = path.substr(0, dot);
  }
}

}  // namespace hooke
