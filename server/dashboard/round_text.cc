#include "server/dashboard/round_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/rule_facts.h"

namespace hooke {
namespace {

// Reports are about a second old. Shorter waits are a part of any exchange.
constexpr double kShortestWaitSeconds = 1;
constexpr size_t kNamedMax = 8;

// Returns "group 3", "groups 1, 2 and 4", or "groups 0, 1 and 30 more".
std::string Named(const std::vector<uint32_t>& groups) {
  const size_t named = groups.size() > kNamedMax ? kNamedMax - 1 : groups.size();
  std::string text = groups.size() == 1 ? "group " : "groups ";
  for (size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == groups.size();
    absl::StrAppend(&text, i == 0 ? "" : is_last ? " and " : ", ", groups[i]);
  }
  if (named < groups.size()) absl::StrAppend(&text, " and ", groups.size() - named, " more");
  return text;
}

// Whether the group is in the midst of its training, but no rank of it works now: it waits, starts or is held.
bool IsAway(const v1::GroupStatus& group) {
  return group.task() == v1::GroupStart::TRAIN &&
         (group.state() == v1::GROUP_STATE_WAITING || group.state() == v1::GROUP_STATE_STARTING ||
          group.state() == v1::GROUP_STATE_HELD);
}

bool Trains(const v1::GroupStatus& group) {
  return group.task() == v1::GroupStart::TRAIN && group.state() == v1::GROUP_STATE_RUNNING && group.has_progress();
}

}  // namespace

std::string RoundText(const v1::JobStatus& job) {
  const std::optional<RuleName> rule = RuleOf(static_cast<uint32_t>(job.spec().averaging().rule()));
  if (job.state() != v1::JOB_STATE_RUNNING || !rule.has_value() || !WaitsForOthers(*rule)) return "";
  std::vector<uint32_t> waiting, others, away;
  double waited = 0;
  uint64_t exchanges = 0;
  for (const v1::GroupStatus& group : job.groups()) {
    if (IsAway(group)) away.push_back(group.group());
    if (!Trains(group)) continue;
    const v1::RankProgress& progress = group.progress();
    exchanges = std::max(exchanges, progress.exchanges());
    const bool waits =
        progress.phase() == v1::RankProgress::EXCHANGE && progress.phase_seconds() >= kShortestWaitSeconds;
    (waits ? waiting : others).push_back(group.group());
    if (waits) waited = std::max(waited, progress.phase_seconds());
  }
  if (waiting.empty() && others.empty()) return "";
  std::string text = InRounds(*rule) ? absl::StrCat("about ", exchanges, " rounds; ") : "";
  if (waiting.empty()) return absl::StrCat(text, "no group waits for another");
  absl::StrAppend(&text, Named(waiting), waiting.size() == 1 ? " has" : " have", " waited ",
                  static_cast<int64_t>(std::min(waited, 1e9)), " s for ");
  if (!others.empty()) return absl::StrCat(text, Named(others));
  if (away.empty()) return absl::StrCat(text, "a server");
  return absl::StrCat(text, Named(away), ", which ", away.size() == 1 ? "does" : "do", " not run now, or a server");
}

}  // namespace hooke
