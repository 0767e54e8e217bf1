#ifndef HOOKE_SERVER_COORDINATOR_COORDINATOR_H_
#define HOOKE_SERVER_COORDINATOR_COORDINATOR_H_

// Admits jobs, places groups, keeps membership, restarts what died. A ClusterState under one mutex, with its effects
// carried out: stored, then logged, then put into the outboxes of the workers' sessions. No gRPC here: service.h speaks
// it, tests call this directly.
//
// Thread-safe. `now` is the caller's clock. Store and log are used by one thread at a time, never under the mutex: in
// batches, each of all that has changed since the one before. What one call changed may be written by another thread
// that is writing already, or by the next Tick. While the store fails, nothing is sent that rests on what could not be
// stored, and it is tried again each second (from Tick).

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/coordinator/cluster_state.h"
#include "server/coordinator/job_log.h"
#include "server/coordinator/job_store.h"
#include "server/coordinator/profile_store.h"

namespace spdlog {
class logger;
}

namespace hooke {

struct CoordinatorOptions {
  std::shared_ptr<JobStore> store;         // Used by this coordinator alone.
  std::shared_ptr<JobLog> log;             // Used by this coordinator alone.
  std::shared_ptr<ProfileStore> profiles;  // Used by this coordinator alone. Null: profiles are not kept.
  std::shared_ptr<spdlog::logger> logger;
  ClusterStateOptions cluster;
  // Log lines waiting to be written. Further ones are dropped, and the log says how many.
  size_t pending_log_max = 100000;
};

class Coordinator {
 public:
  static constexpr size_t kOutboxMax = 8192;  // Commands waiting for one worker; one that has more is disconnected.
  static constexpr int kBatchesPerCall = 16;  // Written by one call, also while others keep changing things.

  // Loads what is stored. Errors are the store's and the log's.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Create(CoordinatorOptions options, absl::Time now);

  // ---- Users ----

  // The job's id, once it is stored. The same submission_id again gives the same id, so every error may be tried again:
  // RESOURCE_EXHAUSTED and INTERNAL of the store after its disk was seen to; UNAVAILABLE: the same is being stored.
  absl::StatusOr<std::string> Submit(const v1::SubmitRequest& request, absl::Time now);
  // The job's status, once its end is stored. NOT_FOUND; errors of the store: it is cancelled, and stored when the disk
  // is well again.
  absl::StatusOr<v1::JobStatus> Cancel(const std::string& job_id, absl::Time now);
  absl::StatusOr<v1::JobStatus> Status(const std::string& job_id, absl::Time now);
  std::vector<v1::JobStatus> List(absl::Time now);
  std::vector<v1::NodeStatus> Nodes(absl::Time now);
  // NOT_FOUND, and the errors of JobLog::Read.
  absl::StatusOr<LogText> ReadLog(const std::string& job_id, uint64_t offset, uint64_t bytes_max);
  // The ranks whose profiles are kept, at least one. NOT_FOUND: no such job; FAILED_PRECONDITION: it has no profile.
  absl::StatusOr<std::vector<ProfileKey>> ListProfiles(const std::string& job_id);
  // Of a key that ListProfiles gave. NOT_FOUND: it has gone meanwhile; DATA_LOSS.
  absl::StatusOr<v1::RankProfile> ReadProfile(const ProfileKey& key) { return options_.profiles->Read(key); }
  // The job has ended and every line about it is written. False, too, for a moment after its end.
  bool LogIsComplete(const std::string& job_id);
  // Returns when the job's version is not `seen` any more, at the latest after `timeout` of real time or at Stop. The
  // version now.
  uint64_t WaitForChange(const std::string& job_id, uint64_t seen, absl::Duration timeout);

  // ---- Daemons ----

  // The address of the server in this process, once it is known: shard 0 of every job while it lives.
  void SetOwnServer(const std::string& address);

  absl::StatusOr<SessionId> Hello(const v1::WorkerHello& hello, absl::Time now);
  absl::Status Message(SessionId session, const v1::WorkerMessage& message, absl::Time now);
  // The last call for a session, whatever ended it.
  void Gone(SessionId session, absl::Time now);
  absl::StatusOr<std::vector<std::string>> ServerHeartbeat(const v1::ServerHeartbeatRequest& request, absl::Time now);

  struct Outgoing {
    std::vector<v1::WorkerCommand> commands;  // To be sent in this order.
    bool open = true;                         // False: end the session.
  };
  // Takes what waits for the worker; when nothing does, waits up to `timeout` of real time.
  Outgoing TakeCommands(SessionId session, absl::Duration timeout);

  // ---- Time ----

  void Tick(absl::Time now);
  // Ends all sessions and waits, now and in future.
  void Stop();
  bool stopped();

 private:
  struct Outbox {
    std::deque<v1::WorkerCommand> commands;
    std::map<GroupKey, uint64_t> seen;
    bool open = true;

    bool HasSomething() const { return !commands.empty() || !seen.empty() || !open; }
  };
  struct Batch {
    Effects effects;
    std::vector<JobRecord> jobs;
  };

  // `highest_number`: of the jobs that have a log, for logs and centers stay where a job store was moved away.
  Coordinator(CoordinatorOptions options, std::vector<JobRecord> jobs, uint64_t highest_number, absl::Time now);

  // Carries out what is pending, unless another thread is at it, which then does.
  void Flush(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Batch> TakeBatch(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Write(const Batch& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Forget(const std::set<std::string>& job_ids) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteProfiles(const Batch& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(Batch batch, const absl::Status& stored, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Deliver(Effects effects, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectEffects() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts what was dropped into the log, behind what was kept.
  void LogDropped(Effects& effects, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for what has changed up to now, and for nothing that changes later.
  absl::Status WaitUntilStored(const std::string& job_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Constant; store and log are used by whoever set writing_.
  const CoordinatorOptions options_;

  absl::Mutex mutex_;
  ClusterState state_ ABSL_GUARDED_BY(mutex_);
  Effects pending_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> dropped_ ABSL_GUARDED_BY(mutex_);  // Job -> its log lines dropped from pending_.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  int submits_waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // For their turn to write; batches and submissions take turns.
  bool batch_is_next_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t batches_taken_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t batches_done_ ABSL_GUARDED_BY(mutex_) = 0;                // Written, or put back because the store failed.
  std::set<std::string> jobs_being_logged_ ABSL_GUARDED_BY(mutex_);  // In the batch that is being written.
  absl::Status store_status_ ABSL_GUARDED_BY(mutex_);                // Of the last Put.
  absl::Time store_retry_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // After one that failed.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<SessionId, Outbox> outboxes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_COORDINATOR_H_
