#ifndef HOOKE_SERVER_COORDINATOR_WRITE_QUEUE_H_
#define HOOKE_SERVER_COORDINATOR_WRITE_QUEUE_H_

// The data that wait for the coordinator's writer, and the batch that the writer is busy with. Knows no threads, disks
// or locks; the Coordinator calls it under its mutex. Its size is bounded however long the writer takes: jobs by their
// number, log lines and profiles by their bytes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "server/coordinator/effects.h"
#include "server/coordinator/profile_store.h"
#include "server/coordinator/records.h"

namespace hooke {

struct WriteQueueOptions {
  // Limit for log lines that wait. Further lines are dropped, and the job's log says how many.
  size_t log_bytes_max = 16 << 20;
  // Limit for profiles that wait. A further one is dropped; its rank sends the next one within seconds.
  size_t profile_bytes_max = 64 << 20;
};

// The data that the writer writes in one go, in this order.
struct WriteBatch {
  std::vector<JobRecord> jobs;                    // Changed jobs.
  std::map<std::string, ForgottenJob> forgotten;  // Jobs to remove, by id.
  std::vector<JobRecord> submissions;
  std::vector<Effects::LogEntry> log;
  std::map<ProfileKey, std::string> profiles;  // Each a serialized v1::RankProfile.

  bool ChangesJobs() const { return !jobs.empty() || !forgotten.empty(); }
};

class WriteQueue {
 public:
  explicit WriteQueue(const WriteQueueOptions& options) : options_(options) {}

  // Takes the jobs, forgotten jobs, log lines and profiles out of `effects`.
  void Add(Effects& effects);
  void AddLog(Effects::LogEntry entry);
  void AddSubmission(JobRecord job) { submissions_.push_back(std::move(job)); }
  // Takes the submission back; null if the writer has it already.
  std::optional<JobRecord> WithdrawSubmission(const std::string& job_id);

  // Whether there is something to take. Changed and forgotten jobs count only if `may_change_jobs`.
  bool HasWork(bool may_change_jobs) const;
  // Takes everything that waits; changed and forgotten jobs only if `may_change_jobs`. `find` returns a job's record,
  // or null if the job is forgotten. Only one batch may be out at a time.
  WriteBatch Take(bool may_change_jobs, const std::function<const JobRecord*(const std::string&)>& find,
                  absl::Time now);
  // The writer has finished the batch. If its changes of jobs could not be stored, they wait again.
  void Done(bool changes_stored);

  // The number of the batch that stores the last change of this job, or that it is forgotten; 0: none waits.
  uint64_t BatchOf(const std::string& job_id) const;
  // All batches up to this number are stored.
  uint64_t stored() const { return stored_; }
  // Whether log lines of this job wait or are being written.
  bool HasLogOf(const std::string& job_id) const;
  // Whether profiles of this job wait or are being written.
  bool HasProfilesOf(const std::string& job_id) const;

 private:
  struct Lines {
    uint64_t waiting = 0;
    uint64_t dropped = 0;
  };

  const WriteQueueOptions options_;
  std::set<std::string> jobs_;
  std::map<std::string, ForgottenJob> forgotten_;
  std::vector<JobRecord> submissions_;
  std::vector<Effects::LogEntry> log_;
  size_t log_bytes_ = 0;
  std::map<std::string, Lines> lines_;  // By job, for jobs with lines in log_ or with dropped lines.
  std::map<ProfileKey, std::string> profiles_;
  size_t profile_bytes_ = 0;

  // The contents of the batch that is out.
  bool changes_are_out_ = false;
  std::set<std::string> jobs_out_;
  std::map<std::string, ForgottenJob> forgotten_out_;
  std::set<std::string> logs_out_;
  std::set<std::string> profiles_out_;

  uint64_t taken_ = 0;  // Number of the last batch with changes of jobs that was taken.
  uint64_t stored_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_WRITE_QUEUE_H_
