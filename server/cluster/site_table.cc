#include "server/cluster/site_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "job/group_kinds.h"
#include "server/cluster/known.h"

namespace hooke {
namespace {

// Another agent may speak for a site that was silent for this long. An agent may wait for its batch system's commands
// between two heartbeats.
constexpr absl::Duration kLease = absl::Seconds(90);

}  // namespace

absl::StatusOr<bool> SiteTable::Hear(const std::string& site, const std::string& instance, Instant now) {
  const auto known = agents_.find(site);
  const bool is_new = known == agents_.end();
  if (is_new && agents_.size() >= known::kNodesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the coordinator knows ", known::kNodesMax, " sites, and takes no more"));
  }
  const bool other = !is_new && known->second.instance != instance;
  if (other && IsAlive(site, now)) {
    const absl::Duration silent = now.steady - known->second.last_heard.steady;
    return absl::AlreadyExistsError(absl::StrCat("another process gets workers for site ", site, " and was heard ",
                                                 absl::FormatDuration(absl::Floor(silent, absl::Seconds(1))),
                                                 " ago: end it first, or give this one another --site"));
  }
  Agent& agent = agents_[site];
  agent.instance = instance;
  agent.last_heard = now;
  return is_new || other;
}

std::vector<std::pair<std::string, std::string>> SiteTable::SetNotes(const std::string& site,
                                                                     std::map<std::string, std::string> notes) {
  std::map<std::string, std::string>& before = agents_.at(site).notes;
  std::vector<std::pair<std::string, std::string>> changed;
  for (const auto& [job_id, note] : notes) {
    const auto old = before.find(job_id);
    if (old == before.end() || old->second != note) changed.emplace_back(job_id, note);
  }
  before = std::move(notes);
  return changed;
}

bool SiteTable::IsAlive(const std::string& site, Instant now) const {
  const auto agent = agents_.find(site);
  return agent != agents_.end() && now.steady - agent->second.last_heard.steady < kLease;
}

std::string SiteTable::TextOf(const JobRecord& job, const std::string& site, Instant now) const {
  const auto agent = agents_.find(site);
  if (agent == agents_.end()) {
    return job.spec.slurm().count(site) == 0 ? ""
                                             : absl::StrCat("; no hooke-worker --slurm --site ", site, " has come yet");
  }
  if (!IsAlive(site, now)) {
    const absl::Duration silent = now.steady - agent->second.last_heard.steady;
    return absl::StrCat("; the process that gets workers for ", site, " was last heard ",
                        absl::FormatDuration(absl::Floor(silent, absl::Minutes(1))),
                        " ago: start hooke-worker --slurm --site ", site, " again");
  }
  const auto note = agent->second.notes.find(job.job_id);
  return note == agent->second.notes.end() ? "" : absl::StrCat("; ", note->second);
}

std::string EvaluationSite(const known::Job& job, const SiteTable& sites, const WorkerTable& workers, Instant now) {
  std::vector<v1::GroupKind> kinds = KindsOf(job.record.spec);
  const auto fewer = [](const v1::GroupKind& a, const v1::GroupKind& b) { return a.ranks() < b.ranks(); };
  std::stable_sort(kinds.begin(), kinds.end(), fewer);
  for (const v1::GroupKind& kind : kinds) {
    const std::string& site = kind.site();
    if (sites.IsAlive(site, now)) return site;
    for (const auto& [name, worker] : workers) {
      const bool fits =
          (site.empty() || worker.site == site) && (worker.only_job.empty() || worker.only_job == job.record.job_id);
      if (fits && workers.IsAlive(worker, now) && worker.gets_groups()) return site;
    }
  }
  return kinds.front().site();
}

}  // namespace hooke
