#include "job/model_file/export_metadata.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/state_word.h"
#include "wire/model_metadata.h"

namespace hooke {
namespace {

// Increase it when a key gets another meaning or is removed. A new key needs no increase, because readers ignore
// unknown keys.
constexpr int kFormatVersion = 1;

void AddCenter(const v1::CenterEvaluated& center, Metadata& metadata) {
  // NaN: the user's program has measured something else.
  if (!std::isnan(center.accuracy())) {
    metadata.emplace_back("center_test_accuracy", ShortestDecimal(center.accuracy()));
  }
  metadata.emplace_back("center_test_samples", absl::StrCat(center.samples()));
  metadata.emplace_back("center_epoch", ShortestDecimal(center.epoch()));
  metadata.emplace_back("center_step", absl::StrCat(center.step()));
}

// Adds the number of steps of each group, and of its exchanges that every server answered. Adds nothing unless all
// groups have reported since the coordinator started.
void AddProgress(const v1::JobStatus& job, Metadata& metadata) {
  std::vector<uint64_t> steps;
  std::vector<uint64_t> exchanges;
  for (const v1::GroupStatus& group : job.groups()) {
    if (group.task() == v1::GroupStart::EVALUATE) continue;
    if (!group.has_progress()) return;
    steps.push_back(group.progress().step());
    exchanges.push_back(group.progress().exchanges() -
                        std::min(group.progress().exchanges(), group.progress().exchange_failures()));
  }
  if (steps.empty()) return;
  metadata.emplace_back("group_steps", absl::StrCat("[", absl::StrJoin(steps, ", "), "]"));
  metadata.emplace_back("group_exchanges", absl::StrCat("[", absl::StrJoin(exchanges, ", "), "]"));
}

}  // namespace

Metadata ExportMetadata(const v1::JobStatus& job, const v1::Layout& layout) {
  Metadata metadata = {{"format", "pt"},
                       {"hooke_format", absl::StrCat(kFormatVersion)},
                       {"hooke_version", HOOKE_VERSION},
                       {"hooke_job", job.job_id()},
                       {"job_state", JobStateText(job.state())}};
  if (layout.has_model()) {
    for (auto& pair : ModelMetadata(layout.model())) metadata.push_back(std::move(pair));
  } else if (!HasCommand(job.spec())) {
    metadata.emplace_back("architecture", job.spec().model().name());
  }
  const v1::AveragingSpec& averaging = job.spec().averaging();
  metadata.emplace_back("rule", absl::AsciiStrToLower(v1::AveragingSpec::Rule_Name(averaging.rule())));
  metadata.emplace_back("groups", absl::StrCat(job.spec().groups().count()));
  metadata.emplace_back("ranks", absl::StrCat(job.spec().groups().ranks()));
  if (HasKinds(job.spec())) metadata.emplace_back("group_kinds", GroupsText(job.spec()));
  if (!HasCommand(job.spec())) metadata.emplace_back("epochs", absl::StrCat(job.spec().train().epochs()));
  if (job.has_center()) AddCenter(job.center(), metadata);
  AddProgress(job, metadata);
  return metadata;
}

}  // namespace hooke
