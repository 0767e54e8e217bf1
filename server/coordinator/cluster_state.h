#ifndef HOOKE_SERVER_COORDINATOR_CLUSTER_STATE_H_
#define HOOKE_SERVER_COORDINATOR_CLUSTER_STATE_H_

// What the coordinator knows, and what follows from each event: a function from (state, event, now) to (new state,
// Effects). No I/O, no threads, no clock, no lock: the Coordinator calls it under its mutex and carries the effects
// out. What is decided comes from job_spec_check.h, placement.h, lifecycle.h and liveness.h.
//
// Its sources: cluster_state.cc (jobs), cluster_state_workers.cc (workers), cluster_state_events.cc (what they report),
// cluster_state_time.cc (ticks, servers, placement), cluster_state_view.cc (what people see).

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "server/coordinator/choose_servers.h"
#include "server/coordinator/effects.h"
#include "server/coordinator/instant.h"
#include "server/coordinator/lifecycle.h"
#include "server/coordinator/liveness.h"
#include "server/coordinator/records.h"

namespace hooke {

struct ClusterStateOptions {
  LivenessOptions liveness;
  RestartOptions restart;
  size_t finished_jobs_max = 1000;  // Of more, those that ended first are forgotten.
  // Jobs that wait or run, and the bytes of their specs. Beyond either, submissions are refused.
  size_t unfinished_jobs_max = 2000;
  size_t unfinished_bytes_max = 256 << 20;
};

class ClusterState {
 public:
  static constexpr size_t kNoticesMax = 20;
  static constexpr size_t kNodesMax = 4096;      // Workers, and servers.
  static constexpr size_t kTextBytesMax = 2048;  // Of a message that a daemon sends.

  // `jobs` as they were stored. Groups that ran wait one lease for their workers to come back.
  ClusterState(ClusterStateOptions options, std::vector<JobRecord> jobs, Instant now);

  // ---- Jobs ----

  // New jobs get numbers above this one.
  void ReserveNumbers(uint64_t highest);

  struct Submission {
    std::string job_id;
    bool is_new = false;
    JobRecord job;  // Where new: to be stored, and then handed to EndSubmit.
  };
  // INVALID_ARGUMENT, FAILED_PRECONDITION: the spec; UNAVAILABLE: the same submission is being stored;
  // RESOURCE_EXHAUSTED: too many jobs wait or run.
  absl::StatusOr<Submission> BeginSubmit(const v1::SubmitRequest& request, Instant now);
  // The job is stored, or could not be, and then it never was.
  void EndSubmit(const JobRecord& job, bool stored, Instant now);
  // NOT_FOUND. A job that has ended stays as it is.
  absl::Status Cancel(const std::string& job_id, Instant now);

  // ---- Workers ----

  // INVALID_ARGUMENT: a field is out of range. ALREADY_EXISTS: another live daemon has that name.
  absl::StatusOr<SessionId> Hello(const v1::WorkerHello& hello, Instant now);
  // ABORTED: the session was replaced; INVALID_ARGUMENT: no message a worker may send now. The session is to be ended
  // then.
  absl::Status Message(SessionId session, const v1::WorkerMessage& message, Instant now);
  // The session's stream has ended. Its groups are left alone until the lease runs out.
  void Gone(SessionId session, Instant now);

  // ---- Servers and time ----

  void SetOwnServer(const std::string& address) { own_server_ = address; }
  // The jobs of the request that have ended. INVALID_ARGUMENT: a field is out of range.
  absl::StatusOr<std::vector<std::string>> ServerHeartbeat(const v1::ServerHeartbeatRequest& request, Instant now);
  // Silences, leases, retries, and old jobs. To be called every moment (about 100 ms).
  void Tick(Instant now);

  // ---- What people see ----

  absl::StatusOr<v1::JobStatus> Status(const std::string& job_id, Instant now) const;
  // NOT_FOUND: there is no such job.
  absl::Status CheckKnown(const std::string& job_id) const;
  struct JobList {
    std::vector<v1::JobStatus> jobs;  // Newest first, without notices.
    size_t left_out = 0;              // Older ones.
  };
  // As many of the newest jobs as `bytes_max` has room for.
  JobList List(size_t bytes_max, Instant now) const;
  std::vector<v1::NodeStatus> Nodes(Instant now) const;
  // Grows whenever Status would change. 0: there is no such job.
  uint64_t Version(const std::string& job_id) const;

  Effects TakeEffects() { return std::exchange(effects_, {}); }
  const JobRecord* Find(const std::string& job_id) const;
  // The job has ended, and where it failed no group's line can come after the cause.
  bool LogHasEnded(const std::string& job_id) const;

 private:
  // What is known of a group while daemons talk.
  struct LiveGroup {
    v1::RankProgress progress;  // Of rank 0, of this incarnation.
    bool has_progress = false;
    std::map<uint32_t, std::vector<v1::AbsentServer>> absent;  // By rank, of this incarnation; of the job's servers.
    uint64_t furthest_step = 0;                                // Of all incarnations.
    bool lacks_server = false;     // A rank of this incarnation gave up because of a server.
    uint32_t server_failures = 0;  // Ends in a row for that reason, without a new step.
    // When this incarnation first said that it works, and when last; steady.
    std::optional<absl::Duration> first_work;
    absl::Duration last_work;
    absl::Duration retry_at = -absl::InfiniteDuration();  // Steady.
    std::vector<v1::Silence> silences;
  };
  struct Job {
    JobRecord record;
    std::vector<LiveGroup> live;  // As long as record.groups.
    std::deque<v1::Notice> notices;
    std::optional<v1::Notice> setback;  // The last of those with RankNotice.setback.
    absl::Duration ended_at;            // Steady; set if the job has ended.
    uint64_t version = 1;
  };
  struct Worker {
    std::string name;
    std::string instance;
    std::string site;
    std::string version;
    uint32_t slots = 0;  // 0: known from stored groups only; it has not said hello.
    SessionId session = 0;
    Instant last_heard;
    bool silent = false;  // And people were told.
    bool lost = false;
    std::map<GroupKey, uint32_t>
        occupants;  // What it may be running, with the slots that takes; also what it was told to stop.
    std::set<GroupKey>
        unconfirmed;  // Placed here, but not in its hello: lost unless their end comes before a heartbeat.
  };
  struct Server {
    bool heard = false;  // False: only known from stored jobs.
    std::string version;
    uint64_t center_bytes = 0;
    uint32_t centers = 0;       // In memory.
    uint32_t disk_centers = 0;  // On disk only.
    uint64_t disk_bytes = 0;
    Instant last_heard;
    bool silent = false;
  };

  // cluster_state.cc
  absl::Status CheckRoomFor(const v1::JobSpec& spec) const;
  Job* FindJob(const std::string& job_id);
  void Changed(Job& job) {
    ++job.version;
    effects_.shown.insert(job.record.job_id);
  }
  void Store(Job& job);
  void Log(const Job& job, absl::string_view text, Instant now);
  void LogDaemon(absl::string_view text, Instant now);
  void Notice(Job& job, absl::string_view text, Instant now);  // And logs it.
  void EndGroup(Job& job, GroupRecord& group, const GroupOutcome& outcome, Instant now);
  void LoseGroup(Job& job, GroupRecord& group, absl::string_view why, Instant now);
  void ApplyGroupDecision(Job& job, GroupRecord& group, const GroupDecision& decision, Instant now);
  void ApplyJobDecision(Job& job, Instant now);
  void EndJob(Job& job, v1::JobState state, absl::string_view reason, Instant now);
  void StopOccupants(const std::string& job_id, absl::string_view reason);
  // Repeats the cause of a job that has failed just now after the last word of the groups that still run.
  void AwaitLastWords(const Job& job, Instant now);
  void SayLastWords(Instant now);
  // Whether a worker may be running a group of the job.
  bool IsOccupant(const std::string& job_id) const;
  // `after`: the job whose change is to be stored first; empty: none.
  void Send(SessionId session, v1::WorkerCommand command, const std::string& after = "") {
    effects_.commands.push_back({session, std::move(command), after});
  }

  // cluster_state_workers.cc
  Worker* WorkerOf(SessionId session);
  void TakeOver(Worker& worker, const v1::WorkerHello& hello, Instant now);
  void ConfirmMissing(Worker& worker, Instant now);
  void WorkerAnswers(Worker& worker, Instant now);

  // cluster_state_events.cc
  void Event(Worker& worker, const v1::GroupEvent& event, Instant now);
  void ApplyEvent(Job& job, GroupRecord& group, const v1::GroupEvent& event, Instant now);
  void ApplyReport(Job& job, GroupRecord& group, const v1::RankReport& report, Instant now);
  void ApplyAbsent(Job& job, GroupRecord& group, const v1::RankReport& report);
  void ApplyProgress(Job& job, GroupRecord& group, const v1::RankProgress& progress, Instant now);
  void ApplyEvaluated(Job& job, GroupRecord& group, const v1::CenterEvaluated& result, Instant now);
  void ApplyProfile(Job& job, GroupRecord& group, const v1::RankReport& report, Instant now);
  void ApplySilence(Job& job, GroupRecord& group, const v1::SilenceChanged& change, Instant now);
  void TakeLog(const Worker& worker, const v1::LogLines& lines, Instant now);

  // cluster_state_time.cc
  void Place(Instant now);
  void ApplyWait(Job& job, GroupRecord& group, const std::string& reason);
  // Who would hold the job's center if its first group started now.
  ServerChoice ChooseServersFor(const Job& job, Instant now) const;
  bool IsInUse(const std::string& address) const;
  void FixServers(Job& job, Instant now);
  void Start(Job& job, GroupRecord& group, Worker& worker, Instant now);
  void CheckWorkers(Instant now);
  void CheckServers(Instant now);
  void ForgetOldJobs(Instant now);
  bool HaveHeardOfItsEnd(const Job& job, Instant now) const;
  void WorkerSilent(Worker& worker, Instant now);
  void LoseWorker(Worker& worker, Instant now);
  void ServerSilent(const std::string& address, Server& server, Instant now);
  void ServerAnswers(const std::string& address, Server& server, Instant now);
  void AddSilence(Job& job, const GroupRecord& group, const std::string& what, Instant since);
  void RemoveSilence(Job& job, const GroupRecord& group, const std::string& what);

  // cluster_state_view.cc
  v1::JobStatus StatusOf(const Job& job, Instant now) const;
  bool IsAlive(const Server& server, Instant now) const { return server.heard && IsAlive(server.last_heard, now); }
  bool IsAlive(Instant last_heard, Instant now) const {
    return LivenessOf(now.steady - last_heard.steady, options_.liveness) == Liveness::kAlive;
  }

  const ClusterStateOptions options_;
  std::map<uint64_t, Job> jobs_;  // By number.
  std::map<std::string, uint64_t> number_of_job_;
  std::map<std::string, std::string> job_of_submission_;
  std::set<std::string> being_stored_;  // Submission ids.
  // Jobs that failed while workers ran groups of theirs: after the last word of those, the log repeats the cause.
  std::set<std::string> last_words_due_;
  uint64_t next_number_ = 1;
  std::map<std::string, Worker> workers_;
  std::map<SessionId, std::string> worker_of_session_;
  SessionId next_session_ = 1;
  std::map<std::string, Server> servers_;
  std::string own_server_;
  absl::Duration last_tick_;  // Steady.
  Effects effects_;
};

// Cut to `bytes_max` at a character's border, so that it stays valid UTF-8.
std::string Shortened(absl::string_view text, size_t bytes_max = ClusterState::kTextBytesMax);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_CLUSTER_STATE_H_
