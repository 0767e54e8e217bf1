#include "server/coordinator/job_spec_check.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "job/job_check.h"
#include "job/job_refusal.h"
#include "server/scheduling/queue_text.h"

namespace hooke {

absl::Status CheckJobSpec(const v1::JobSpec& spec) { return RefusalOf(CheckJob(spec)); }

absl::Status CheckRanksFit(const v1::JobSpec& spec, absl::Span<const FreeWorker> workers) {
  const uint32_t ranks = spec.groups().ranks();
  WorkerSet at_site;
  for (const FreeWorker& worker : workers) {
    if (spec.groups().site().empty() || worker.site == spec.groups().site()) at_site.push_back(&worker);
  }
  const auto fewer = [](const FreeWorker* a, const FreeWorker* b) { return a->slots < b->slots; };
  const auto largest = std::max_element(at_site.begin(), at_site.end(), fewer);
  if (largest == at_site.end() || ranks <= (*largest)->slots) return absl::OkStatus();
  WorkerSet most;
  for (const WorkerSet& set : WorkersTogether(at_site)) {
    const uint64_t slots = SumOf(set, &FreeWorker::slots);
    if (ranks <= slots) return absl::OkStatus();
    if (set.size() > 1 && slots > SumOf(most, &FreeWorker::slots)) most = set;
  }
  const std::string message =
      absl::StrCat(ranks, " ranks do not fit: the largest worker, ", (*largest)->name, " at site ", (*largest)->site,
                   ", has ", (*largest)->slots, " slots", most.empty() ? "" : TogetherText(most, &FreeWorker::slots),
                   "; lower groups.ranks, or start a worker with --slots=", ranks,
                   most.empty() ? ", or workers on several nodes (docs/several-machines.md)" : ", or more workers");
  return RefusalOf({{"groups.ranks", message, {"groups.ranks"}}}, absl::StatusCode::kFailedPrecondition);
}

}  // namespace hooke
