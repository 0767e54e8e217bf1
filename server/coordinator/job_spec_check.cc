#include "server/coordinator/job_spec_check.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "job/job_check.h"
#include "job/job_refusal.h"

namespace hooke {

absl::Status CheckJobSpec(const v1::JobSpec& spec) { return RefusalOf(CheckJob(spec)); }

absl::Status CheckRanksFit(const v1::JobSpec& spec, absl::Span<const FreeWorker> workers) {
  const uint32_t ranks = spec.groups().ranks();
  std::vector<FreeWorker> at_site;
  for (const FreeWorker& worker : workers) {
    if (spec.groups().site().empty() || worker.site == spec.groups().site()) at_site.push_back(worker);
  }
  const auto largest =
      std::max_element(at_site.begin(), at_site.end(), [](const auto& a, const auto& b) { return a.slots < b.slots; });
  if (largest == at_site.end() || ranks <= largest->slots) return absl::OkStatus();
  std::string together;
  uint64_t most = 0;
  for (const auto& set : WorkersTogether(at_site)) {
    uint64_t slots = 0;
    for (const FreeWorker* worker : set) slots += worker->slots;
    if (ranks <= slots) return absl::OkStatus();
    if (set.size() < 2 || slots <= most) continue;
    most = slots;
    together = absl::StrCat(", and the ", set.size(), " workers that site ", set.front()->site,
                            " has for groups of several workers have ", slots, " together");
  }
  const std::string message = absl::StrCat(
      ranks, " ranks do not fit: the largest worker, ", largest->name, " at site ", largest->site, ", has ",
      largest->slots, " slots", together, "; lower groups.ranks, or start a worker with --slots=", ranks,
      together.empty() ? ", or workers on several nodes (docs/several-machines.md)" : ", or more workers");
  return RefusalOf({{"groups.ranks", message, {"groups.ranks"}}}, absl::StatusCode::kFailedPrecondition);
}

}  // namespace hooke
