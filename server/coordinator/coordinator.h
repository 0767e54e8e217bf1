#ifndef HOOKE_SERVER_COORDINATOR_COORDINATOR_H_
#define HOOKE_SERVER_COORDINATOR_COORDINATOR_H_

// Admits jobs, places groups, keeps membership, restarts what died. A ClusterState under one mutex, and one thread that
// writes. No gRPC here: service.h speaks it, tests call this directly.
//
// Thread-safe. `now` is the caller's clocks. No call does I/O but ReadLog, ListProfiles and ReadProfile. Daemons' calls
// and Tick never wait for the store; Submit and Cancel do, up to 10 s.
//
// What a change causes goes three ways. Commands that rest on nothing stored go into the outboxes of the workers'
// sessions at once: welcomes, stops, clock echoes, and the acknowledgements of events that changed no record. What has
// to be written goes to the writer. Starts, and the acknowledgements of events that changed a record, are held until
// the writer has stored that. While the store fails it is tried again each second, and all else goes on.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/coordinator/cluster_state.h"
#include "server/coordinator/instant.h"
#include "server/coordinator/job_log.h"
#include "server/coordinator/job_store.h"
#include "server/coordinator/journal.h"
#include "server/coordinator/profile_store.h"
#include "server/coordinator/session_outbox.h"
#include "server/coordinator/write_queue.h"

namespace spdlog {
class logger;
}

namespace hooke {

struct CoordinatorOptions {
  enum class Writer {
    kThread,
    kCaller,  // For tests in virtual time, which are one thread: each call writes what it changed before it returns.
  };

  std::shared_ptr<JobStore> store;         // Used by this coordinator alone.
  std::shared_ptr<JobLog> log;             // Used by this coordinator alone.
  std::shared_ptr<ProfileStore> profiles;  // Used by this coordinator alone. Null: profiles are not kept.
  std::shared_ptr<spdlog::logger> logger;
  ClusterStateOptions cluster;
  WriteQueueOptions queue;
  // Of what waits for one worker. A session that has more is ended: its worker does not read. It connects again.
  size_t outbox_bytes_max = 64 << 20;
  absl::Duration store_timeout = absl::Seconds(10);  // Real time that Submit and Cancel wait for the store.
  Writer writer = Writer::kThread;
};

class Coordinator {
 public:
  // Loads what is stored. Errors are the store's and the log's.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Create(CoordinatorOptions options, Instant now);
  // Tries once more to write what waits, and waits for that. No other call may be running or follow.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // ---- Users ----

  // The job's id, once it is stored. The same submission_id again gives the same id, so every error may be tried again:
  // RESOURCE_EXHAUSTED: too many jobs, or the store's disk is full; INTERNAL: the disk must be seen to; UNAVAILABLE:
  // the same is being stored.
  absl::StatusOr<std::string> Submit(const v1::SubmitRequest& request, Instant now);
  // The job's status, once its end is stored. Its groups are told to stop at once. NOT_FOUND; errors of the store: the
  // job is cancelled, but a coordinator that is started again before the disk is well would not know it.
  absl::StatusOr<v1::JobStatus> Cancel(const std::string& job_id, Instant now);
  absl::StatusOr<v1::JobStatus> Status(const std::string& job_id, Instant now);
  // As many of the newest jobs as `bytes_max` has room for.
  ClusterState::JobList List(size_t bytes_max, Instant now);
  std::vector<v1::NodeStatus> Nodes(Instant now);
  // NOT_FOUND, and the errors of JobLog::Read.
  absl::StatusOr<LogText> ReadLog(const std::string& job_id, uint64_t offset, uint64_t bytes_max);
  // The ranks whose profiles are kept, at least one. If the job has ended, waits for up to a second for those that are
  // still to be written. NOT_FOUND: no such job; FAILED_PRECONDITION: it has no profile.
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

  absl::StatusOr<SessionId> Hello(const v1::WorkerHello& hello, Instant now);
  absl::Status Message(SessionId session, const v1::WorkerMessage& message, Instant now);
  // The last call for a session, whatever ended it.
  void Gone(SessionId session, Instant now);
  absl::StatusOr<std::vector<std::string>> ServerHeartbeat(const v1::ServerHeartbeatRequest& request, Instant now);

  struct Outgoing {
    std::vector<v1::WorkerCommand> commands;  // To be sent in this order.
    bool open = true;                         // False: end the session.
  };
  // Takes what may be sent to the worker; when nothing may, waits up to `timeout` of real time.
  Outgoing TakeCommands(SessionId session, absl::Duration timeout);

  // ---- Time ----

  void Tick(Instant now);
  // Ends all sessions and waits, now and in future. Writing goes on.
  void Stop();
  bool stopped();

 private:
  struct Session {
    SessionOutbox outbox;
    bool open = true;
    absl::CondVar wakes;  // Whoever takes its commands.
  };
  // Those who wait for a job to change.
  struct Watch {
    int watchers = 0;
    absl::CondVar changed;
  };

  // `highest_number`: of the jobs that have a log, for logs and centers stay where a job store was moved away.
  Coordinator(CoordinatorOptions options, std::vector<JobRecord> jobs, uint64_t highest_number, Instant now);

  // Waits until `signal` comes, at the latest until `deadline` on the steady clock; false: it is past. May return
  // early.
  bool Wait(absl::CondVar& signal, absl::Duration deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts what follows from the last change where it belongs, and wakes who waits for it.
  void Apply(Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(Effects& effects, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(SessionId id, const std::string& why, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> AwaitSubmission(const std::string& job_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for what has changed up to now, and for nothing that changes later.
  absl::Status AwaitStored(const std::string& job_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- The writer ----

  void WriteUntilEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteOnce() ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(const WriteBatch& batch, const Journal::Result& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes here and now where no thread does.
  void WriteHere() ABSL_LOCKS_EXCLUDED(mutex_);

  const CoordinatorOptions options_;
  Journal journal_;  // Of the writer alone.

  absl::Mutex mutex_;
  ClusterState state_ ABSL_GUARDED_BY(mutex_);
  WriteQueue queue_ ABSL_GUARDED_BY(mutex_);
  Instant latest_ ABSL_GUARDED_BY(mutex_);             // `now` of the last call that changed something.
  absl::Status store_status_ ABSL_GUARDED_BY(mutex_);  // Of the last time that changes were stored.
  absl::Duration store_retry_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();      // Steady; after a failure.
  std::map<std::string, std::optional<absl::Status>> submitting_ ABSL_GUARDED_BY(mutex_);  // By job; set: the outcome.
  std::map<SessionId, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Watch>> watches_ ABSL_GUARDED_BY(mutex_);  // By job.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::CondVar writer_wakes_;  // There is work, or the end.
  absl::CondVar written_;       // A batch is done: whoever waits for the store looks again.

  std::thread writer_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_COORDINATOR_H_
