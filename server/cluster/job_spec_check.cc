#include "server/cluster/job_spec_check.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "job/group_kinds.h"
#include "job/job_check.h"
#include "job/job_refusal.h"
#include "server/scheduling/queue_text.h"
#include "server/scheduling/room.h"

namespace hooke {

absl::Status CheckJobSpec(const v1::JobSpec& spec) { return RefusalOf(CheckJob(spec)); }

namespace {

// `what` begins the sentence with the kind; empty if all groups are alike.
absl::Status CheckKindFits(const v1::GroupKind& kind, const std::string& what, absl::Span<const FreeWorker> workers) {
  const std::string key = what.empty() ? "groups.ranks" : "groups";
  const uint32_t ranks = kind.ranks();
  WorkerSet at_site;
  for (const FreeWorker& worker : workers) {
    const bool has_gpus = GpusFit(kind.gpus_per_rank(), worker.slots, worker.gpus);
    if (has_gpus && (kind.site().empty() || worker.site == kind.site())) at_site.push_back(&worker);
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
      absl::StrCat(what, ranks, " ranks do not fit: the largest worker, ", (*largest)->name, " at site ",
                   (*largest)->site, ", has ", (*largest)->slots, " slots",
                   kind.gpus_per_rank() == 0 ? "" : absl::StrCat(" with ", GpusText(kind.gpus_per_rank())),
                   most.empty() ? "" : TogetherText(most, &FreeWorker::slots), "; lower ", what.empty() ? key : "ranks",
                   ", or start a worker with --slots=", ranks,
                   most.empty() ? ", or workers on several nodes (docs/several-machines.md)" : ", or more workers");
  return RefusalOf({{key, message, {key}}}, absl::StatusCode::kFailedPrecondition);
}

}  // namespace

absl::Status CheckRanksFit(const v1::JobSpec& spec, absl::Span<const FreeWorker> workers) {
  int number = 0;
  for (const v1::GroupKind& kind : KindsOf(spec)) {
    const std::string what = HasKinds(spec) ? absl::StrCat("kind ", ++number, ": ") : "";
    if (absl::Status status = CheckKindFits(kind, what, workers); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace hooke
