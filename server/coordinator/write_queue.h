#ifndef HOOKE_SERVER_COORDINATOR_WRITE_QUEUE_H_
#define HOOKE_SERVER_COORDINATOR_WRITE_QUEUE_H_

// What waits for the coordinator's writer, and what the writer is busy with. Knows no threads, disks or locks; the
// Coordinator calls it under its mutex. It is bounded however long the writer takes: jobs by their number, log lines
// and profiles by their bytes.

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
  // Of log lines that wait. Further lines are dropped, and the job's log says how many.
  size_t log_bytes_max = 16 << 20;
  // Of profiles that wait. A further one is dropped; its rank sends the next one within seconds.
  size_t profile_bytes_max = 64 << 20;
};

// What the writer writes in one go, in this order.
struct WriteBatch {
  std::vector<JobRecord> jobs;      // Changed.
  std::set<std::string> forgotten;  // Ids of jobs to remove.
  std::vector<JobRecord> submissions;
  std::vector<Effects::LogEntry> log;
  std::map<ProfileKey, v1::RankProfile> profiles;

  bool ChangesJobs() const { return !jobs.empty() || !forgotten.empty(); }
};

class WriteQueue {
 public:
  explicit WriteQueue(const WriteQueueOptions& options) : options_(options) {}

  // Takes the jobs, forgotten jobs, log lines and profiles out of `effects`.
  void Add(Effects& effects);
  void AddLog(Effects::LogEntry entry);
  void AddSubmission(JobRecord job) { submissions_.push_back(std::move(job)); }
  // The submission as it was added; null if the writer has it already.
  std::optional<JobRecord> WithdrawSubmission(const std::string& job_id);

  // Is there something to take? Changed and forgotten jobs count only if `may_change_jobs`.
  bool HasWork(bool may_change_jobs) const;
  // All that waits; without changed and forgotten jobs unless `may_change_jobs`. `find` gives a job's record, or null
  // if the job is forgotten. Only one batch is out at a time.
  WriteBatch Take(bool may_change_jobs, const std::function<const JobRecord*(const std::string&)>& find,
                  absl::Time now);
  // The batch that was taken is written. If its changes of jobs could not be stored, they wait again.
  void Done(bool changes_stored);

  // The number of the batch that stores the last change of this job; 0: it is stored.
  uint64_t BatchOf(const std::string& job_id) const;
  // All batches up to this number are stored.
  uint64_t stored() const { return stored_; }
  // Lines of this job wait or are being written.
  bool HasLogOf(const std::string& job_id) const;
  // So with profiles.
  bool HasProfilesOf(const std::string& job_id) const;

 private:
  struct Lines {
    uint64_t waiting = 0;
    uint64_t dropped = 0;
  };

  const WriteQueueOptions options_;
  std::set<std::string> jobs_;
  std::set<std::string> forgotten_;
  std::vector<JobRecord> submissions_;
  std::vector<Effects::LogEntry> log_;
  size_t log_bytes_ = 0;
  std::map<std::string, Lines> lines_;  // Of jobs with lines in log_, or with lines that were dropped.
  std::map<ProfileKey, v1::RankProfile> profiles_;
  size_t profile_bytes_ = 0;

  // Of the batch that is out.
  bool changes_are_out_ = false;
  std::set<std::string> jobs_out_;
  std::set<std::string> forgotten_out_;
  std::set<std::string> logs_out_;
  std::set<std::string> profiles_out_;

  uint64_t taken_ = 0;  // Number of the last batch with changes of jobs that was taken.
  uint64_t stored_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_WRITE_QUEUE_H_
