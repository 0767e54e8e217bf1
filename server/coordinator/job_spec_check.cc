#include "server/coordinator/job_spec_check.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "job/job_check.h"
#include "job/job_refusal.h"

namespace hooke {

absl::Status CheckJobSpec(const v1::JobSpec& spec) { return RefusalOf(CheckJob(spec)); }

absl::Status CheckRanksFit(const v1::JobSpec& spec, absl::Span<const WorkerRoom> workers) {
  std::map<std::string, uint64_t> site_slots;
  const WorkerRoom* largest = nullptr;
  for (const WorkerRoom& worker : workers) {
    if (!spec.groups().site().empty() && worker.site != spec.groups().site()) continue;
    site_slots[worker.site] += worker.slots;
    if (largest == nullptr || worker.slots > largest->slots) largest = &worker;
  }
  if (largest == nullptr || spec.groups().ranks() <= largest->slots) return absl::OkStatus();
  auto site = std::max_element(site_slots.begin(), site_slots.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string message = absl::StrCat(
      spec.groups().ranks(), " ranks do not fit: all ranks of a group run on one worker, and the largest worker, ",
      largest->name, " at site ", largest->site, ", has ", largest->slots, " slots (the largest site, ", site->first,
      ", has ", site->second, "); lower groups.ranks, or start a worker with --slots=", spec.groups().ranks());
  return RefusalOf({{"groups.ranks", message, {"groups.ranks"}}}, absl::StatusCode::kFailedPrecondition);
}

}  // namespace hooke
