#include "server/coordinator/job_store.h"

#include <algorithm>

namespace hooke {

absl::StatusOr<std::vector<JobRecord>> InMemoryJobStore::Load() {
  std::vector<JobRecord> jobs;
  for (const auto& [id, job] : jobs_) jobs.push_back(job);
  std::sort(jobs.begin(), jobs.end(), [](const JobRecord& a, const JobRecord& b) { return a.number < b.number; });
  return jobs;
}

absl::Status InMemoryJobStore::Put(absl::Span<const JobRecord> jobs) {
  if (!failure_.ok()) return failure_;
  for (const JobRecord& job : jobs) jobs_[job.job_id] = job;
  return absl::OkStatus();
}

absl::Status InMemoryJobStore::Remove(const std::vector<std::string>& job_ids) {
  if (!failure_.ok()) return failure_;
  for (const std::string& job_id : job_ids) jobs_.erase(job_id);
  return absl::OkStatus();
}

}  // namespace hooke
