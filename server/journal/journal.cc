#include "server/journal/journal.h"

#include <spdlog/spdlog.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hooke {

Journal::Journal(std::unique_ptr<JobStore> store, std::shared_ptr<JobLog> log, std::shared_ptr<ProfileStore> profiles,
                 std::shared_ptr<spdlog::logger> logger)
    : store_(std::move(store)), log_(std::move(log)), profiles_(std::move(profiles)), logger_(std::move(logger)) {}

Journal::Result Journal::Write(const WriteBatch& batch) {
  Result result;
  result.changes = StoreChanges(batch);
  if (!result.changes.ok()) {
    logger_->error("what has changed could not be stored, trying again: {}", result.changes.ToString());
  }
  // Submissions have their own transaction, so that a failure to store other changes does not refuse them.
  if (!batch.submissions.empty()) result.submissions = store_->Write(batch.submissions, {});
  for (const JobRecord& job : batch.submissions) {
    if (!result.submissions.ok()) logger_->error("job {} is refused: {}", job.job_id, result.submissions.ToString());
  }
  WriteLogs(batch);
  WriteProfiles(batch);
  result.history = WriteHistories(batch);
  for (const std::string& job_id : batch.read_histories) result.histories.emplace(job_id, ReadHistory(job_id));
  return result;
}

absl::Status Journal::StoreChanges(const WriteBatch& batch) {
  std::vector<ForgottenJob> forgotten;
  for (const auto& [job_id, job] : batch.forgotten) forgotten.push_back(job);
  std::vector<WorkerDrain> drains;
  for (const auto& [worker, drain] : batch.drains) drains.push_back({worker, drain});
  std::vector<OwnerUse> uses;
  for (const auto& [owner, use] : batch.uses) uses.push_back(use);
  if (absl::Status status = store_->Write(batch.jobs, forgotten, drains, uses); !status.ok()) return status;
  for (const ForgottenJob& job : forgotten) {
    absl::Status gone = log_->Remove(job.job_id);
    if (!gone.ok()) logger_->warn("the log of {}, which is forgotten, stays: {}", job.job_id, gone.ToString());
    if (profiles_ == nullptr) continue;
    gone = profiles_->Remove(job.job_id);
    if (!gone.ok()) logger_->warn("profiles of {}, which is forgotten, stay: {}", job.job_id, gone.ToString());
  }
  return absl::OkStatus();
}

void Journal::WriteLogs(const WriteBatch& batch) {
  std::map<std::string, std::vector<JobLog::Line>> lines;
  for (const Effects::LogEntry& entry : batch.log) {
    // A forgotten job's log has been removed, and a line would create it again.
    if (!entry.job_id.empty() && batch.forgotten.count(entry.job_id) == 0) {
      lines[entry.job_id].emplace_back(LogLine(entry.time, entry.line), entry.ours);
    }
    if (entry.ours) logger_->info("{}{}{}", entry.job_id, entry.job_id.empty() ? "" : ": ", entry.line);
  }
  for (const auto& [job_id, text] : lines) {
    absl::Status logged = log_->Append(job_id, text);
    if (!logged.ok()) logger_->error("{} log lines are lost: {}", text.size(), logged.ToString());
  }
}

void Journal::WriteProfiles(const WriteBatch& batch) {
  if (profiles_ == nullptr) return;
  for (const auto& [key, profile] : batch.profiles) {
    if (batch.forgotten.count(key.job_id) > 0) continue;
    absl::Status kept = profiles_->Put(key, profile);
    if (!kept.ok()) logger_->warn("{}: a profile is lost: {}", key.job_id, kept.ToString());
  }
}

absl::Status Journal::WriteHistories(const WriteBatch& batch) {
  Records all;
  for (const auto& [job_id, records] : batch.history) {
    // A forgotten job's history has been removed, and a record would create it again.
    if (batch.forgotten.count(job_id) == 0) all.insert(records.begin(), records.end());
  }
  if (all.empty()) return absl::OkStatus();
  absl::Status status = store_->WriteHistory(std::move(all));
  if (!status.ok()) logger_->error("histories of jobs could not be stored, trying again: {}", status.ToString());
  return status;
}

absl::StatusOr<std::map<SeriesKey, StoredSeries>> Journal::ReadHistory(const std::string& job_id) {
  const absl::StatusOr<Records> records = store_->ReadHistory(JobNumberOf(job_id));
  if (!records.ok()) return records.status();
  return SeriesFrom(*records);
}

}  // namespace hooke
