#include "server/cluster/job_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/cluster/shortened.h"

namespace hooke {

known::Job& JobTable::Add(JobRecord record) {
  ReserveNumbers(record.number);
  number_of_job_[record.job_id] = record.number;
  job_of_submission_[record.submission_id] = record.job_id;
  known::Job& job = jobs_[record.number];
  job.live.resize(record.groups.size());
  job.record = std::move(record);
  return job;
}

ForgottenJob JobTable::Forget(uint64_t number) {
  const JobRecord& record = jobs_.at(number).record;
  // A server compares the key with that of its shard: ClusterState::Start gives it to the job's groups.
  ForgottenJob trace = {record.job_id, number, record.submission_id};
  job_of_submission_.erase(record.submission_id);
  number_of_job_.erase(record.job_id);
  jobs_.erase(number);
  forgot_at_ = ++last_change_;
  KeepTrace(trace);
  return trace;
}

void JobTable::KeepTrace(ForgottenJob job) {
  ReserveNumbers(job.number);
  forgotten_[job.number] = std::move(job);
  if (forgotten_.size() > ForgottenJob::kKeptMax) forgotten_.erase(forgotten_.begin());
}

const known::Job* JobTable::Find(const std::string& job_id) const {
  const auto number = number_of_job_.find(job_id);
  return number == number_of_job_.end() ? nullptr : &jobs_.at(number->second);
}

known::Job* JobTable::Find(const std::string& job_id) {
  const auto number = number_of_job_.find(job_id);
  return number == number_of_job_.end() ? nullptr : &jobs_.at(number->second);
}

known::Job* JobTable::FindNumber(uint64_t number) {
  const auto job = jobs_.find(number);
  return job == jobs_.end() ? nullptr : &job->second;
}

const JobRecord* JobTable::FindRecord(const std::string& job_id) const {
  const known::Job* job = Find(job_id);
  return job == nullptr ? nullptr : &job->record;
}

uint64_t JobTable::ChangesOf(const std::string& job_id) const {
  const known::Job* job = Find(job_id);
  return job == nullptr ? 0 : job->changes;
}

std::string JobTable::IdOfSubmission(const std::string& submission_id) const {
  const auto job = job_of_submission_.find(submission_id);
  return job == job_of_submission_.end() ? "" : job->second;
}

const ForgottenJob* JobTable::FindForgotten(const std::string& job_id) const {
  const auto found = forgotten_.find(JobNumberOf(job_id));
  return found != forgotten_.end() && found->second.job_id == job_id ? &found->second : nullptr;
}

absl::StatusOr<const known::Job*> JobTable::Known(const std::string& job_id) const {
  if (const known::Job* job = Find(job_id); job != nullptr) return job;
  return absl::NotFoundError(absl::StrCat("no job ", Shortened(job_id, 80), ": `hooke jobs` lists them"));
}

void JobTable::ReserveNumbers(uint64_t highest) { next_number_ = std::max(next_number_, highest + 1); }

}  // namespace hooke
