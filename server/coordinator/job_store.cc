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

absl::Status InMemoryJobStore::Forget(absl::Span<const ForgottenJob> jobs) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  for (const ForgottenJob& job : jobs) {
    jobs_.erase(job.job_id);
    forgotten_[job.number] = job;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ForgottenJob>> InMemoryJobStore::LoadForgotten() {
  std::vector<ForgottenJob> forgotten;
  absl::MutexLock lock(&mutex_);
  while (forgotten_.size() > ForgottenJob::kKeptMax) forgotten_.erase(forgotten_.begin());
  for (const auto& [number, job] : forgotten_) forgotten.push_back(job);
  return forgotten;
}

void InMemoryJobStore::FailWith(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  failure_ = std::move(status);
}

}  // namespace hooke
