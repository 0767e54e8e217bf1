#ifndef HOOKE_SERVER_CLUSTER_JOB_TABLE_H_
#define HOOKE_SERVER_CLUSTER_JOB_TABLE_H_

// The jobs that the coordinator knows, by number, by id and by submission, and the traces of those that it forgot.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/cluster/known.h"
#include "server/records/records.h"

namespace hooke {

class JobTable {
 public:
  using Jobs = std::map<uint64_t, known::Job>;

  // Adds a job, of which nothing has been reported. Its number must be new. The job stays at its address until it is
  // forgotten.
  known::Job& Add(JobRecord record);
  // Removes a job that is there, and keeps and returns its trace.
  ForgottenJob Forget(uint64_t number);
  // Keeps the trace of a job that an earlier process forgot. Beyond ForgottenJob::kKeptMax, the oldest one goes.
  void KeepTrace(ForgottenJob job);

  // The jobs by number.
  Jobs::iterator begin() { return jobs_.begin(); }
  Jobs::iterator end() { return jobs_.end(); }
  Jobs::const_iterator begin() const { return jobs_.begin(); }
  Jobs::const_iterator end() const { return jobs_.end(); }
  Jobs::const_reverse_iterator rbegin() const { return jobs_.rbegin(); }
  Jobs::const_reverse_iterator rend() const { return jobs_.rend(); }
  size_t size() const { return jobs_.size(); }

  // Returns null if there is no such job.
  known::Job* Find(const std::string& job_id);
  const known::Job* Find(const std::string& job_id) const;
  known::Job* FindNumber(uint64_t number);
  const JobRecord* FindRecord(const std::string& job_id) const;
  // Returns the id of the submission's job; "" if it has none.
  std::string IdOfSubmission(const std::string& submission_id) const;
  // Returns the trace of a job that was forgotten; null if this one was not.
  const ForgottenJob* FindForgotten(const std::string& job_id) const;
  // Returns the job. NOT_FOUND: there is no such job.
  absl::StatusOr<const known::Job*> Known(const std::string& job_id) const;
  absl::Status CheckKnown(const std::string& job_id) const { return Known(job_id).status(); }

  // Makes new jobs get numbers above this one.
  void ReserveNumbers(uint64_t highest);
  uint64_t TakeNumber() { return next_number_++; }

  // Notes a change of the job that its status shows.
  void NoteChange(known::Job& job) { job.changes = ++last_change_; }
  // Returns a number that grows with each change of the job that its status shows. 0: there is no such job.
  uint64_t ChangesOf(const std::string& job_id) const;
  // Returns a number that grows with each change of any job.
  uint64_t last_change() const { return last_change_; }
  // Returns the value of `last_change` when a job was last forgotten. 0: none was.
  uint64_t forgot_at() const { return forgot_at_; }

 private:
  Jobs jobs_;
  std::map<std::string, uint64_t> number_of_job_;
  std::map<std::string, std::string> job_of_submission_;
  std::map<uint64_t, ForgottenJob> forgotten_;  // By number; at most ForgottenJob::kKeptMax.
  uint64_t next_number_ = 1;
  uint64_t last_change_ = 1;
  uint64_t forgot_at_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_JOB_TABLE_H_
