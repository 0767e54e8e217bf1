#include "server/journal/write_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Returns the memory that an entry takes. It includes the fixed size of an element, because many small lines take more
// memory than their text.
size_t BytesOf(const Effects::LogEntry& entry) { return sizeof entry + entry.job_id.size() + entry.line.size(); }
size_t BytesOf(const std::string& profile) { return sizeof(std::string) + profile.size(); }

}  // namespace

void WriteQueue::Add(Effects& effects) {
  jobs_.merge(effects.jobs);
  effects.jobs.clear();
  forgotten_.merge(effects.forgotten);
  effects.forgotten.clear();
  for (const auto& [worker, drain] : std::exchange(effects.drains, {})) drains_[worker] = drain;
  for (auto& [owner, use] : std::exchange(effects.uses, {})) uses_[owner] = std::move(use);
  for (JobRecord& job : std::exchange(effects.submissions, {})) submissions_.push_back(std::move(job));
  for (Effects::LogEntry& entry : std::exchange(effects.log, {})) AddLog(std::move(entry));
  for (auto& [key, profile] : std::exchange(effects.profiles, {})) {
    const auto before = profiles_.find(key);
    const size_t freed = before == profiles_.end() ? 0 : BytesOf(before->second);
    const size_t bytes = profile_bytes_ - freed + BytesOf(profile);
    if (bytes > options_.profile_bytes_max) continue;
    profile_bytes_ = bytes;
    profiles_[key] = std::move(profile);
  }
}

void WriteQueue::AddLog(Effects::LogEntry entry) {
  Lines& lines = lines_[entry.job_id];
  const size_t bytes = BytesOf(entry);
  // After a dropped line the job's further lines are dropped too, until the next batch. So the log has one gap, at
  // whose place it says how many lines are missing.
  if (lines.dropped > 0 || log_bytes_ + bytes > options_.log_bytes_max) {
    ++lines.dropped;
    return;
  }
  ++lines.waiting;
  log_bytes_ += bytes;
  log_.push_back(std::move(entry));
}

std::optional<JobRecord> WriteQueue::WithdrawSubmission(const std::string& job_id) {
  const auto same = [&job_id](const JobRecord& job) { return job.job_id == job_id; };
  const auto found = std::find_if(submissions_.begin(), submissions_.end(), same);
  if (found == submissions_.end()) return std::nullopt;
  JobRecord job = std::move(*found);
  submissions_.erase(found);
  return job;
}

bool WriteQueue::HasWork(bool may_change_records) const {
  if (!submissions_.empty() || !lines_.empty() || !profiles_.empty()) return true;
  return may_change_records && HasChanges();
}

bool WriteQueue::HasChanges() const {
  return !jobs_.empty() || !forgotten_.empty() || !drains_.empty() || !uses_.empty();
}

WriteBatch WriteQueue::Take(bool may_change_records, const std::function<const JobRecord*(const std::string&)>& find,
                            absl::Time now) {
  WriteBatch batch;
  changes_are_out_ = may_change_records && HasChanges();
  if (changes_are_out_) {
    ++taken_;
    jobs_out_ = std::exchange(jobs_, {});
    forgotten_out_ = std::exchange(forgotten_, {});
    for (const std::string& job_id : jobs_out_) {
      if (const JobRecord* job = find(job_id); job != nullptr) batch.jobs.push_back(*job);
    }
    batch.forgotten = forgotten_out_;
    drains_out_ = std::exchange(drains_, {});
    batch.drains = drains_out_;
    batch.uses = std::exchange(uses_, {});
  }
  batch.submissions = std::exchange(submissions_, {});
  batch.log = std::exchange(log_, {});
  log_bytes_ = 0;
  for (const auto& [job_id, lines] : std::exchange(lines_, {})) {
    logs_out_.insert(job_id);
    if (lines.dropped == 0) continue;
    const std::string text = absl::StrCat("coordinator [", lines.dropped, " lines dropped: more than ",
                                          options_.log_bytes_max, " bytes waited to be written]");
    batch.log.push_back({job_id, text, now, true});
  }
  batch.profiles = std::exchange(profiles_, {});
  for (const auto& [key, profile] : batch.profiles) profiles_out_.insert(key.job_id);
  profile_bytes_ = 0;
  return batch;
}

void WriteQueue::Done(bool changes_stored) {
  logs_out_.clear();
  profiles_out_.clear();
  if (!std::exchange(changes_are_out_, false)) return;
  if (changes_stored) {
    stored_ = taken_;
  } else {
    jobs_.merge(jobs_out_);
    forgotten_.merge(forgotten_out_);
    drains_.merge(drains_out_);  // A newer change of a worker wins.
  }
  jobs_out_.clear();
  forgotten_out_.clear();
  drains_out_.clear();
}

uint64_t WriteQueue::BatchOf(const std::string& job_id) const {
  if (jobs_.count(job_id) > 0 || forgotten_.count(job_id) > 0) return taken_ + 1;
  return jobs_out_.count(job_id) > 0 || forgotten_out_.count(job_id) > 0 ? taken_ : 0;
}

uint64_t WriteQueue::BatchOfDrain(const std::string& worker) const {
  if (drains_.count(worker) > 0) return taken_ + 1;
  return drains_out_.count(worker) > 0 ? taken_ : 0;
}

bool WriteQueue::HasProfilesOf(const std::string& job_id) const {
  const auto first = profiles_.lower_bound({job_id, 0, 0});
  return (first != profiles_.end() && first->first.job_id == job_id) || profiles_out_.count(job_id) > 0;
}

bool WriteQueue::HasLogOf(const std::string& job_id) const {
  return lines_.count(job_id) > 0 || logs_out_.count(job_id) > 0;
}

}  // namespace hooke
