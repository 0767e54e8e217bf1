#ifndef HOOKE_SERVER_JOURNAL_WRITE_QUEUE_H_
#define HOOKE_SERVER_JOURNAL_WRITE_QUEUE_H_

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
#include "server/cluster/effects.h"
#include "server/cluster/profile_key.h"
#include "server/records/records.h"

namespace hooke {

struct WriteQueueOptions {
  // Limit for log lines that wait. Further lines are dropped, and the job's log says how many.
  size_t log_bytes_max = 16 << 20;
  // Limit for profiles that wait. A further one is dropped; its rank sends the next one within seconds.
  size_t profile_bytes_max = 64 << 20;
};

// The data that the writer writes together, in the order of the fields.
struct WriteBatch {
  std::vector<JobRecord> jobs;                    // Changed jobs.
  std::map<std::string, ForgottenJob> forgotten;  // Jobs to remove, by id.
  std::map<std::string, v1::Drain> drains;        // Changed drains, by worker.
  // Uses, by owner. They do not wait again after a failure, because a batch has all of them anew each minute.
  std::map<std::string, OwnerUse> uses;
  std::vector<JobRecord> submissions;
  std::vector<Effects::LogEntry> log;
  std::map<ProfileKey, std::string> profiles;  // Each a serialized v1::RankProfile.
  std::map<std::string, Records> history;      // Records of histories, by job. The Coordinator adds them.
  std::set<std::string> read_histories;        // Jobs whose stored histories are asked for. The Coordinator adds them.

  bool ChangesRecords() const { return !jobs.empty() || !forgotten.empty() || !drains.empty() || !uses.empty(); }
};

class WriteQueue {
 public:
  explicit WriteQueue(const WriteQueueOptions& options) : options_(options) {}

  // Takes the jobs, forgotten jobs, drains, uses, submissions, log lines and profiles out of `effects`.
  void Add(Effects& effects);
  // Takes the submission out of the queue. nullopt if the writer has it already.
  std::optional<JobRecord> WithdrawSubmission(const std::string& job_id);

  // Returns whether Take would return anything. Changed and forgotten jobs, drains and uses count only if
  // `may_change_records`.
  bool HasWork(bool may_change_records) const;
  // Takes all data that wait, but changed and forgotten jobs, drains and uses only if `may_change_records`. `find`
  // returns a job's record, or null if the job is forgotten. Only one batch may be out at a time.
  WriteBatch Take(bool may_change_records, const std::function<const JobRecord*(const std::string&)>& find,
                  absl::Time now);
  // Notes that the writer has finished the batch. If its changes of records could not be stored, they wait again.
  void Done(bool changes_stored);

  // Returns the number of the batch that stores this job's last change, or removes the job. 0: no change of the job
  // waits.
  uint64_t BatchOf(const std::string& job_id) const;
  // Returns the number of the batch that stores the worker's last drain. 0: no change of it waits.
  uint64_t BatchOfDrain(const std::string& worker) const;
  // Returns the highest number such that all batches up to it are stored.
  uint64_t stored() const { return stored_; }
  // Returns whether log lines of this job wait or are being written.
  bool HasLogOf(const std::string& job_id) const;
  // Returns whether profiles of this job wait or are being written.
  bool HasProfilesOf(const std::string& job_id) const;

 private:
  // Returns whether records of jobs, workers or owners wait.
  bool HasChanges() const;
  struct Lines {
    uint64_t waiting = 0;
    uint64_t dropped = 0;
  };

  void AddLog(Effects::LogEntry entry);

  const WriteQueueOptions options_;
  std::set<std::string> jobs_;
  std::map<std::string, ForgottenJob> forgotten_;
  std::map<std::string, v1::Drain> drains_;
  std::map<std::string, OwnerUse> uses_;
  std::vector<JobRecord> submissions_;
  std::vector<Effects::LogEntry> log_;
  size_t log_bytes_ = 0;
  std::map<std::string, Lines> lines_;  // By job, for jobs with lines in log_ or with dropped lines.
  std::map<ProfileKey, std::string> profiles_;
  size_t profile_bytes_ = 0;

  // What the batch holds that the writer took and has not finished. If its changes cannot be stored, they go back to
  // `jobs_`, `forgotten_` and `drains_`.
  bool changes_are_out_ = false;
  std::set<std::string> jobs_out_;
  std::map<std::string, ForgottenJob> forgotten_out_;
  std::map<std::string, v1::Drain> drains_out_;
  std::set<std::string> logs_out_;
  std::set<std::string> profiles_out_;

  uint64_t taken_ = 0;  // The number of the last batch that the writer took with changes of records.
  uint64_t stored_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_JOURNAL_WRITE_QUEUE_H_
