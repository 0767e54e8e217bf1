#include "server/coordinator/job_store.h"

#include <algorithm>
#include <utility>

namespace hooke {

absl::StatusOr<std::vector<JobRecord>> InMemoryJobStore::Load() {
  std::vector<JobRecord> jobs;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, job] : jobs_) jobs.push_back(job);
  std::sort(jobs.begin(), jobs.end(), [](const JobRecord& a, const JobRecord& b) { return a.number < b.number; });
  return jobs;
}

absl::Status InMemoryJobStore::Put(absl::Span<const JobRecord> jobs) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  for (const JobRecord& job : jobs) jobs_[job.job_id] = job;
  return absl::OkStatus();
}

absl::Status InMemoryJobStore::Remove(const std::vector<std::string>& job_ids) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  for (const std::string& job_id : job_ids) jobs_.erase(job_id);
  return absl::OkStatus();
}

void InMemoryJobStore::FailWith(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  failure_ = std::move(status);
}

}  // namespace hooke
