#include "server/cluster/keep_limits.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Returns why the job goes because of the limits of number and age; "" if it is within them.
std::string ReasonBesidesBytes(const FinishedJob& job, bool is_excess, const KeepLimits& limits) {
  if (is_excess) return absl::StrCat(limits.jobs_max, " others have ended since");
  if (job.age <= limits.age_max) return "";
  return absl::StrCat("it ended more than ", absl::FormatDuration(limits.age_max), " ago");
}

}  // namespace

std::vector<ForgetDecision> ChooseForgotten(std::vector<FinishedJob> jobs, const KeepLimits& limits) {
  std::sort(jobs.begin(), jobs.end(), [](const FinishedJob& a, const FinishedJob& b) {
    return std::tie(b.age, a.number) < std::tie(a.age, b.number);
  });
  const size_t excess = jobs.size() - std::min(jobs.size(), limits.jobs_max);
  std::vector<ForgetDecision> forgotten;
  std::vector<FinishedJob> left;
  for (size_t i = 0; i < jobs.size(); ++i) {
    std::string reason = ReasonBesidesBytes(jobs[i], i < excess, limits);
    if (reason.empty()) {
      left.push_back(jobs[i]);
    } else if (jobs[i].may_go) {
      forgotten.push_back({jobs[i].number, std::move(reason)});
    }
  }
  uint64_t bytes = std::accumulate(left.begin(), left.end(), uint64_t{0},
                                   [](uint64_t sum, const FinishedJob& job) { return sum + job.bytes; });
  for (const FinishedJob& job : left) {
    if (bytes <= limits.bytes_max) break;
    if (job.bytes == 0) continue;
    if (job.may_go) {
      forgotten.push_back({job.number, absl::StrCat("the centers of finished jobs take ", bytes, " bytes, and at most ",
                                                    limits.bytes_max, " are kept")});
    }
    bytes -= job.bytes;
  }
  return forgotten;
}

}  // namespace hooke
