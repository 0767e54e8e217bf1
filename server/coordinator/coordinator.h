#ifndef HOOKE_SERVER_COORDINATOR_COORDINATOR_H_
#define HOOKE_SERVER_COORDINATOR_COORDINATOR_H_

// The coordinator: it admits jobs, places their groups, tracks which nodes live, and restarts groups that died. It is a
// ClusterState under one mutex, plus one writer thread. It knows no gRPC: service.h adds that, and tests call this
// class directly.
//
// Thread-safe. The caller reads the clocks and passes `now`. With Writer::kThread only Create, ReadLog, ReadLogEnd,
// ListProfiles and ReadProfile do I/O on the calling thread. Daemons' calls and Tick then never wait for the store.
// Submit, Cancel, Scale, Resume, Forget, Drain and ReadHistory wait for it, up to `store_timeout`.
//
// The effects of a change go four ways:
// - Commands that wait for nothing unstored may be sent at once. These are welcomes, launches, most stops, clock
//   echoes, and acknowledgements for jobs without an unstored change. OnReady and TakeReady report the sessions that
//   have such commands, unless these are only acknowledgements.
// - Records, log lines and profiles go to the writer. So do points of histories, every few seconds.
// - Starts wait until the writer has stored the job's record. So do acknowledgements for a job whose record has an
//   unstored change.
// - Servers that are to be dialed wait for TakeDials, because this class knows no sockets.
//
// If the store fails, the writer tries it again each second. Meanwhile everything else goes on.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/instant.h"
#include "clocks/steady_condition.h"
#include "server/cluster/cluster_figures.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/server_dial.h"
#include "server/coordinator/session_outbox.h"
#include "server/history/history_book.h"
#include "server/history/history_records.h"
#include "server/journal/job_log.h"
#include "server/journal/journal.h"
#include "server/journal/profile_store.h"
#include "server/journal/write_queue.h"
#include "server/records/job_store.h"
#include "server/records/record_store.h"

namespace spdlog {
class logger;
}

namespace hooke {

struct CoordinatorOptions {
  enum class Writer {
    kThread,
    kCaller,  // For single-threaded tests in virtual time: each call writes what it changed before it returns.
  };

  std::shared_ptr<RecordStore> store;      // No one else may use it.
  std::shared_ptr<JobLog> log;             // No one else may use it.
  std::shared_ptr<ProfileStore> profiles;  // No one else may use it. Null: profiles are not kept.
  std::shared_ptr<spdlog::logger> logger;
  ClusterStateOptions cluster;
  WriteQueueOptions queue;
  // Limit for the commands that wait for one worker. Beyond it the worker evidently does not read, so its session is
  // ended, and it has to connect again.
  size_t outbox_bytes_max = 64 << 20;
  absl::Duration store_timeout = absl::Seconds(10);  // Real time that calls of users wait for the store.
  Writer writer = Writer::kThread;
};

class Coordinator {
 public:
  // Loads the stored jobs. Errors are the store's and the log's.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Create(CoordinatorOptions options, Instant now);
  // Tries once more to write everything that waits, and returns after that. No other call may be running or follow.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // ---- Users ----

  // Returns the job's id once the job is stored. While the job is known, the same submission_id gives the same id, so
  // it is safe to try again. Errors are those of ClusterState::BeginSubmit and of the store. INTERNAL also means that
  // the store's disk does not answer.
  absl::StatusOr<std::string> Submit(const v1::SubmitRequest& request, Instant now);
  // Tells the job's groups to stop at once. Returns the job's status once its end is stored. NOT_FOUND: no such job.
  // After an error of the store the job is cancelled, but a coordinator that restarts before the store recovers does
  // not know it.
  absl::StatusOr<v1::JobStatus> Cancel(const std::string& job_id, Instant now);
  // Changes the number of the job's groups. Returns the job's status once that is stored; its present groups then still
  // have to leave. Errors are those of ClusterState::Scale and of the store.
  absl::StatusOr<v1::JobStatus> Scale(const v1::ScaleJobRequest& request, Instant now);
  struct Resumed {
    v1::JobStatus job;    // As it is right after the change.
    uint32_t groups = 0;  // Groups that were held.
  };
  // Returns once the change is stored. Errors are those of ClusterState::Resume and of the store.
  absl::StatusOr<Resumed> Resume(const std::string& job_id, Instant now);
  // Forgets a job that has ended, with its log, profiles and center. Returns the job's last status once the removal is
  // stored; only then are servers told to free its shards. Errors are those of ClusterState::Forget and of the store.
  // After an error of the store the job is gone, but a coordinator that restarts before the store recovers knows it
  // again.
  absl::StatusOr<v1::JobStatus> Forget(const std::string& job_id, Instant now);
  // Returns the worker once the change is stored. Errors are those of ClusterState::Drain and of the store. After an
  // error of the store the drain holds, but a coordinator that restarts before the store recovers does not know it.
  absl::StatusOr<v1::NodeStatus> Drain(const std::string& worker, v1::Drain drain, Instant now);
  absl::StatusOr<v1::JobStatus> Status(const std::string& job_id, Instant now);
  absl::StatusOr<v1::ReadStartsResponse> Starts(const std::string& job_id);  // StartsOf.
  // Returns as many of the newest jobs as fit into `bytes_max`.
  JobList List(size_t bytes_max, Instant now);
  JobRows RowsSince(uint64_t version, size_t rows_max);  // RowsSince of cluster_view.h.
  // A job as its page shows it.
  struct JobView {
    uint64_t version = 0;                 // The caller passes it to the next call, to learn what has changed since.
    std::optional<v1::JobStatus> status;  // Unset: nothing has changed since the version that was asked with.
    JobRow row;
  };
  // Returns the job if it has changed since `version`, which is that of an earlier view or 0. NOT_FOUND: no such job.
  absl::StatusOr<JobView> View(const std::string& job_id, uint64_t version, Instant now);
  std::vector<v1::NodeStatus> Nodes(Instant now);
  std::vector<v1::NodeLink> Links();
  CoordinatorFigures Figures(const FigureLimits& limits, Instant now);
  // Returns the files of a job that has not ended. NOT_FOUND: no such job, or it has no files. FAILED_PRECONDITION: it
  // has ended.
  absl::StatusOr<v1::FileSet> FilesOf(const std::string& job_id);
  // Returns the files of all jobs that have not ended.
  std::vector<v1::FileSet> FilesOfAll();
  // Returns lines of the job's log (JobLog::Read). NOT_FOUND: no such job. Other errors are those of JobLog::Read.
  absl::StatusOr<LogText> ReadLog(const std::string& job_id, uint64_t offset, uint64_t bytes_max);
  // Returns the last lines of the job's log (JobLog::ReadEnd). Errors are those of ReadLog.
  absl::StatusOr<LogText> ReadLogEnd(const std::string& job_id, uint64_t bytes_max);
  // Returns the ranks whose profiles are kept, at least one. If the job has ended, first waits up to a second for
  // profiles that are still to be written. NOT_FOUND: no such job; FAILED_PRECONDITION: it has no profile.
  absl::StatusOr<std::vector<ProfileKey>> ListProfiles(const std::string& job_id);
  // Returns a profile whose `key` comes from ListProfiles. NOT_FOUND: the profile was removed meanwhile, or its write
  // was cut short. DATA_LOSS: its file is damaged.
  absl::StatusOr<v1::RankProfile> ReadProfile(const ProfileKey& key) { return options_.profiles->Read(key); }
  // Returns the points of the job's history that are newer than `since_unix_ms`, in the order of ReadHistory
  // (proto/coordinator.proto). NOT_FOUND: no such job. FAILED_PRECONDITION: it has no points at all. Other errors are
  // those of the store, for which it may have to wait.
  absl::StatusOr<std::vector<v1::HistoryPoint>> ReadHistory(const std::string& job_id, int64_t since_unix_ms = 0);
  // Returns whether the job has ended and its log is complete: no line waits to be written, and the cause of a failure
  // will not be written again as the last line. It returns true only some time after the job's end.
  bool LogIsComplete(const std::string& job_id);
  // Waits until JobTable::ChangesOf the job differs from `seen`, `timeout` of real time has passed, or Stop is
  // called. Then returns Changes.
  uint64_t WaitForChange(const std::string& job_id, uint64_t seen, absl::Duration timeout);

  // ---- Daemons ----

  // Sets the identity of the server in this process. If a job uses this server, it is the job's first one.
  void SetOwnServer(const std::string& server_id);

  absl::StatusOr<SessionId> Hello(const v1::WorkerHello& hello, Instant now);
  absl::Status Message(SessionId session, const v1::WorkerMessage& message, Instant now);
  // Takes the end of a session. Must be the last call for the session, whatever ended it.
  void Gone(SessionId session, Instant now);
  absl::StatusOr<v1::ServerHeartbeatResponse> ServerHeartbeat(const v1::ServerHeartbeatRequest& request, Instant now);
  absl::StatusOr<v1::SiteHeartbeatResponse> SiteHeartbeat(const v1::SiteHeartbeatRequest& request, Instant now);
  // Takes the servers to dial now. The caller dials them, and answers each dial by ServerDialed within a bounded time.
  std::vector<ServerDial> TakeDials();
  void ServerDialed(const ServerDial& dial, const DialAnswer& answer, Instant now);

  struct Outgoing {
    std::vector<v1::WorkerCommand> commands;  // To be sent in this order.
    bool open = true;                         // False: end the session.
  };
  // Takes the commands that may be sent to the worker, with the acknowledgements that never waited for the store.
  Outgoing TakeCommands(SessionId session);
  struct Ready {
    SessionId session = 0;
    bool open = true;  // False: end the session. True: call TakeCommands.
  };
  // Returns the sessions that are to be ended, or that have more to send than acknowledgements that never waited for
  // the store. It returns a session only once, until there is something new to send.
  std::vector<Ready> TakeReady();
  // Sets a function `tell`, which is called when TakeReady has something new. It is called on any thread, without a
  // lock, and for a moment even after another OnReady. `tell` must return soon, and may be null.
  void OnReady(std::function<void()> tell);

  // ---- Time ----

  void Tick(Instant now);
  // Ends all sessions and the waits for changes; later ones end at once. The writer goes on.
  void Stop();
  bool stopped();

  spdlog::logger& logger() { return *options_.logger; }  // Safe for any thread.

 private:
  struct Session {
    SessionOutbox outbox;
    bool open = true;
  };
  // The threads in WaitForChange for one job.
  struct Watch {
    int watchers = 0;
    SteadyCondition changed;
  };

  Coordinator(CoordinatorOptions options, std::unique_ptr<JobStore> store, ClusterState state, Instant now);

  // Waits for `signal`, at most until `deadline` on SteadyTime's clock. It may return early. False, without a wait, if
  // the deadline has passed.
  bool Wait(SteadyCondition& signal, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Passes the effects of the last change to the writer, the sessions and TakeDials. Wakes the writer, and the threads
  // that watch a changed job.
  void Apply(Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(Effects& effects, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(SessionId id, const std::string& why, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkReady(SessionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does what follows from a change but must not be done under the mutex: TellReady, and WriteHere.
  void AfterChange() ABSL_LOCKS_EXCLUDED(mutex_);
  void TellReady() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> AwaitSubmission(const std::string& job_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // The change for which AwaitStored waits, for its errors.
  struct Change {
    std::string what;    // "job a-1 is told to stop".
    std::string advice;  // "cancel it again".
  };
  // Waits until the job's changes up to now are stored; it does not wait for later ones.
  absl::Status AwaitStored(const std::string& job_id, const Change& change) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the stored histories of the jobs that go on. It runs before the writer does.
  void LoadHistories() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until all batches up to this one are stored.
  absl::Status AwaitBatch(uint64_t batch, const Change& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- The writer ----

  void WriteUntilEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteOnce() ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(const WriteBatch& batch, const Journal::Result& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes everything that waits, with Writer::kCaller. Otherwise it does nothing.
  void WriteHere() ABSL_LOCKS_EXCLUDED(mutex_);

  const CoordinatorOptions options_;
  Journal journal_;  // Only the writer calls it, so it needs no lock.

  absl::Mutex mutex_;
  ClusterState state_ ABSL_GUARDED_BY(mutex_);
  WriteQueue queue_ ABSL_GUARDED_BY(mutex_);
  Instant latest_ ABSL_GUARDED_BY(mutex_);               // `now` of the last call that may have changed something.
  absl::Status store_status_ ABSL_GUARDED_BY(mutex_);    // The result of the last attempt to store changes.
  uint64_t store_failures_ ABSL_GUARDED_BY(mutex_) = 0;  // Attempts to store jobs that failed.
  // The steady time before which changes are not stored again after a failure.
  absl::Duration store_retry_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  // Submissions by job id; the value is set once the writer has tried to store the job.
  std::map<std::string, std::optional<absl::Status>> submitting_ ABSL_GUARDED_BY(mutex_);
  HistoryBook history_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> histories_wanted_ ABSL_GUARDED_BY(mutex_);  // Jobs whose stored history the writer is to read.
  // The histories that the writer read last.
  std::map<std::string, absl::StatusOr<std::map<SeriesKey, StoredSeries>>> histories_read_ ABSL_GUARDED_BY(mutex_);
  std::map<SessionId, Session> sessions_ ABSL_GUARDED_BY(mutex_);
  std::set<SessionId> ready_ ABSL_GUARDED_BY(mutex_);  // The sessions that the next TakeReady returns.
  // `ready_` was empty and is not any more, and `tell_ready_` was not called for it yet.
  bool must_tell_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> tell_ready_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Watch>> watches_ ABSL_GUARDED_BY(mutex_);  // By job.
  std::vector<ServerDial> dials_ ABSL_GUARDED_BY(mutex_);  // The dials that the next TakeDials returns.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  SteadyCondition writer_wakes_;  // Wakes the writer: there is work, or the coordinator ends.
  SteadyCondition written_;       // Wakes the threads that wait for the store, after each batch.

  std::thread writer_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_COORDINATOR_H_
