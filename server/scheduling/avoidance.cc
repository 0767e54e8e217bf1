#include "server/scheduling/avoidance.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

constexpr size_t kKeptMax = 32;  // Deaths of one worker.

}  // namespace

std::optional<Avoidance> Avoid(const std::deque<Death>& deaths, absl::Duration now, const AvoidOptions& options) {
  if (deaths.empty()) return std::nullopt;
  const Death& last = deaths.back();
  if (now - last.at >= options.avoid_for) return std::nullopt;
  std::set<std::string> jobs;
  std::set<std::pair<std::string, uint32_t>> groups;
  size_t counted = 0;
  absl::Duration first = last.at;
  for (const Death& death : deaths) {
    if (last.at - death.at > options.within) continue;
    if (counted++ == 0) first = death.at;
    jobs.insert(death.job_id);
    groups.insert({death.job_id, death.group});
  }
  const bool one_job_is_to_blame = jobs.size() == 1 && groups.size() == counted;
  if (counted < options.deaths_min || one_job_is_to_blame) return std::nullopt;
  return Avoidance{last.at + options.avoid_for,
                   absl::StrCat("groups died there ", counted, " times within ",
                                absl::FormatDuration(absl::Ceil(last.at - first, absl::Seconds(1))),
                                ", the last one group ", last.group, " of ", last.job_id, ": ", last.why)};
}

void AddDeath(std::deque<Death>& deaths, Death death, const AvoidOptions& options) {
  deaths.push_back(std::move(death));
  while (deaths.size() > kKeptMax || deaths.back().at - deaths.front().at > options.within) deaths.pop_front();
}

}  // namespace hooke
