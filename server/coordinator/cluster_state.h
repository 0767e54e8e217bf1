#ifndef HOOKE_SERVER_COORDINATOR_CLUSTER_STATE_H_
#define HOOKE_SERVER_COORDINATOR_CLUSTER_STATE_H_

// The coordinator's state machine: each call maps (state, event, now) to (new state, Effects). It does no I/O and has
// no threads, clock or lock. The Coordinator calls it under its mutex and carries out the effects. The decisions
// themselves are in job_spec_check.h, choose_servers.h, server_dial.h, placement.h, lifecycle.h, liveness.h and
// keep_limits.h.
//
// Its sources: cluster_state.cc (jobs), cluster_state_workers.cc (workers), cluster_state_events.cc (workers' reports),
// cluster_state_time.cc (ticks, servers, placement), cluster_state_parts.cc (starts of groups, and groups that run on
// several workers), cluster_state_servers.cc (who is at a server's address, and which
// jobs follow a server to another one), cluster_state_forget.cc (jobs that are forgotten, and
// their shards on servers), cluster_state_view.cc (status for users).

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
#include "server/coordinator/keep_limits.h"
#include "server/coordinator/lifecycle.h"
#include "server/coordinator/liveness.h"
#include "server/coordinator/placement.h"
#include "server/coordinator/records.h"
#include "server/coordinator/server_dial.h"

namespace hooke {

struct ClusterStateOptions {
  LivenessOptions liveness;
  RestartOptions restart;
  KeepLimits keep;  // Beyond it, the jobs that ended first are forgotten.
  // Limits for the number of jobs that wait or run, and for the bytes of their specs. Beyond either, submissions are
  // refused.
  size_t unfinished_jobs_max = 2000;
  size_t unfinished_bytes_max = 256 << 20;
  // Where the coordinator listens if other machines reach it and need no token; "" otherwise. Whoever can submit a job
  // with a command runs a program as the workers' user. So such jobs are refused if this is set.
  std::string reached_by_others_at;
};

class ClusterState {
 public:
  static constexpr size_t kNoticesMax = 20;
  static constexpr size_t kNodesMax = 4096;      // Limit for workers, and the same for servers.
  static constexpr size_t kTextBytesMax = 2048;  // Longer texts from daemons are cut.

  // `jobs` are the stored records. The workers of running groups have one lease from `now` on to connect again.
  ClusterState(ClusterStateOptions options, std::vector<JobRecord> jobs, Instant now);

  // ---- Jobs ----

  // New jobs get numbers above this one.
  void ReserveNumbers(uint64_t highest);

  struct Submission {
    std::string job_id;
    bool is_new = false;
    JobRecord job;  // Set if `is_new`: the record to store and then to pass to EndSubmit.
  };
  // INVALID_ARGUMENT, FAILED_PRECONDITION: the spec is refused. UNAVAILABLE: the same submission is being stored.
  // RESOURCE_EXHAUSTED: too many jobs wait or run.
  absl::StatusOr<Submission> BeginSubmit(const v1::SubmitRequest& request, Instant now);
  // Ends what BeginSubmit began. If `stored`, the job now exists; otherwise it is as if it had never been submitted.
  void EndSubmit(const JobRecord& job, bool stored, Instant now);
  // NOT_FOUND: no such job. A job that has ended stays as it is.
  absl::Status Cancel(const std::string& job_id, Instant now);

  // Takes the traces of jobs that were forgotten before this process started. New jobs get higher numbers. Call it
  // once, before anything else.
  void RememberForgotten(std::vector<ForgottenJob> jobs);
  // Forgets a job that has ended. NOT_FOUND: no such job. FAILED_PRECONDITION: it has not ended.
  absl::Status Forget(const std::string& job_id, Instant now);

  // ---- Workers ----

  // INVALID_ARGUMENT: a field is out of range. ALREADY_EXISTS: another live daemon has that name.
  absl::StatusOr<SessionId> Hello(const v1::WorkerHello& hello, Instant now);
  // ABORTED: the session was ended, for example by a newer one. INVALID_ARGUMENT: a worker may not send this message
  // after its hello. After an error the caller ends the session.
  absl::Status Message(SessionId session, const v1::WorkerMessage& message, Instant now);
  // The session's stream has ended. Its groups are left alone until the lease runs out.
  void Gone(SessionId session, Instant now);

  // ---- Servers and time ----

  void SetOwnServer(const std::string& server_id) { own_server_ = server_id; }
  // The answer names jobs of which the server is to free its shard. The caller leaves out those of which it is not
  // stored yet that they are forgotten. Servers are known by their identity. Nothing is placed on one before it was
  // reached at its address. INVALID_ARGUMENT: a field is out of range. FAILED_PRECONDITION: an older server, without an
  // identity.
  absl::StatusOr<v1::ServerHeartbeatResponse> ServerHeartbeat(const v1::ServerHeartbeatRequest& request, Instant now);
  // Answers a dial of the effects. Whoever answers must do so within a bounded time.
  void ServerDialed(const ServerDial& dial, const DialAnswer& answer, Instant now);
  // Does what time alone makes due: it reports silences, ends leases, starts retries and forgets old jobs. Call it
  // about every 100 ms.
  void Tick(Instant now);

  // ---- What people see ----

  absl::StatusOr<v1::JobStatus> Status(const std::string& job_id, Instant now) const;
  // NOT_FOUND: there is no such job.
  absl::Status CheckKnown(const std::string& job_id) const;
  struct JobList {
    std::vector<v1::JobStatus> jobs;  // Newest first, without notices.
    size_t left_out = 0;              // Number of older jobs that did not fit.
  };
  // Returns as many of the newest jobs as fit into `bytes_max`.
  JobList List(size_t bytes_max, Instant now) const;
  std::vector<v1::NodeStatus> Nodes(Instant now) const;
  // Grows with each change of the job that Status shows. 0: there is no such job.
  uint64_t Version(const std::string& job_id) const;

  Effects TakeEffects() { return std::exchange(effects_, {}); }
  const JobRecord* Find(const std::string& job_id) const;
  // Whether the job's log needs no more lines: the job has ended and, if it failed, its cause was logged last.
  bool LogHasEnded(const std::string& job_id) const;

 private:
  // The part of a group's state that comes from reports and is not stored.
  struct LiveGroup {
    v1::RankProgress progress;  // Rank 0's last report in this incarnation.
    bool has_progress = false;
    // The job's servers that a rank of this incarnation misses, by rank.
    std::map<uint32_t, std::vector<v1::AbsentServer>> absent;
    uint64_t furthest_step = 0;    // The highest step over all incarnations.
    bool lacks_server = false;     // A rank of this incarnation gave up because of a server.
    uint32_t server_failures = 0;  // Ends in a row because of a server, without a new step between them.
    // Steady times of this incarnation's first and last report that it works. `last_work` has no meaning while
    // `first_work` is unset.
    std::optional<absl::Duration> first_work;
    absl::Duration last_work;
    absl::Duration retry_at = -absl::InfiniteDuration();  // Steady time before which the group does not start again.
    std::vector<v1::Silence> silences;

    // ---- Of a group that runs on several workers.
    std::set<std::string> ready;  // The workers whose part of this incarnation is ready to be launched.
    bool launched = false;        // All were, and mpirun was asked for.
    absl::Duration ready_by =
        absl::InfiniteDuration();  // Steady time at which a start with a part not ready is given up.
    std::string
        failed_on;  // The worker of the first rank of this incarnation that reported a failure; empty: none did.
    // A part has failed, but another one may know the cause. The group ends when that one has, or at `held_until`.
    std::optional<GroupOutcome> held;
    absl::Duration held_until;  // Steady.
  };
  struct Job {
    JobRecord record;
    std::vector<LiveGroup> live;  // One for each of record.groups.
    std::deque<v1::Notice> notices;
    std::optional<v1::Notice> setback;  // The last notice that came with RankNotice.setback.
    absl::Duration ended_at;            // Steady; set if the job has ended.
    uint64_t version = 1;
  };
  struct Worker {
    std::string name;
    std::string instance;
    std::string site;
    std::string version;
    uint32_t slots = 0;  // 0: known from stored groups only; it has not said hello.
    bool allows_commands = false;
    std::string address;  // WorkerHello.address.
    std::string mpi;      // WorkerHello.mpi.
    SessionId session = 0;
    Instant last_heard;
    bool silent = false;  // Users were told that it does not answer.
    bool lost = false;    // Its lease has run out.
    // The groups that it may be running, each with the slots that it takes. A group that it was told to stop stays here
    // until its end.
    std::map<GroupKey, uint32_t> occupants;
    // Groups placed here that its hello did not name. They are lost unless their end arrives before its next heartbeat.
    std::set<GroupKey> unconfirmed;
  };
  struct Server {
    bool heard = false;  // False: only known from stored jobs.
    ServerClaim claim;   // Of its last heartbeat; if not heard, only the address is set.
    // The process before this one, which started again at the same address. While this one lives it may not come back.
    std::string replaced_instance;
    LiveServer::Reach reach = LiveServer::Reach::kBeingDialed;
    std::string problem;                                 // If `reach` is kFailed: why.
    uint64_t dial = 0;                                   // The number of the dial that is being made; 0: none is.
    absl::Duration dial_at = -absl::InfiniteDuration();  // Steady time of the next dial.
    uint32_t dial_failures = 0;                          // In a row.
    std::string version;
    uint64_t center_bytes = 0;
    uint32_t centers = 0;       // Number of centers in memory.
    uint32_t disk_centers = 0;  // Number of centers that are on disk only.
    uint64_t disk_bytes = 0;
    std::map<std::string, uint64_t> disk_jobs;  // Jobs whose shards are on disk only, and their bytes.
    std::set<std::string> strangers;            // The jobs it holds that were last reported as not known here.
    Instant last_heard;
    bool silent = false;
    bool lost = false;  // Silent for a lease: another server may take its place in jobs.
  };
  // A process that may not speak for the server whose identity it has.
  struct RefusedServer {
    ServerClaim claim;
    std::string version;
    std::string problem;
    Instant last_heard;
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
  // Shows users a notice in the job's status, and logs it.
  void Notice(Job& job, absl::string_view text, Instant now);
  void EndGroup(Job& job, GroupRecord& group, const GroupOutcome& outcome, Instant now);
  void LoseGroup(Job& job, GroupRecord& group, absl::string_view why, Instant now);
  void ApplyGroupDecision(Job& job, GroupRecord& group, const GroupDecision& decision, Instant now);
  void ApplyJobDecision(Job& job, Instant now);
  void EndJob(Job& job, v1::JobState state, absl::string_view reason, Instant now);
  static v1::WorkerCommand StopCommand(const GroupKey& group, absl::string_view reason);
  void StopOccupants(const std::string& job_id, absl::string_view reason);
  // If the job failed just now and workers still run groups of it, SayLastWords will log the cause again after them.
  void AwaitLastWords(const Job& job, Instant now);
  void SayLastWords(Instant now);
  // Whether a worker may be running a group of the job.
  bool IsOccupant(const std::string& job_id) const;
  // The command waits until the change of job `after` is stored. Empty: it waits for nothing.
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
  void ApplyEvent(Job& job, GroupRecord& group, GroupPart& part, const v1::GroupEvent& event, Instant now);
  void ApplyReport(Job& job, GroupRecord& group, const GroupPart& part, const v1::RankReport& report, Instant now);
  void ApplyAbsent(Job& job, GroupRecord& group, const v1::RankReport& report);
  void ApplyProgress(Job& job, GroupRecord& group, const v1::RankProgress& progress, Instant now);
  void ApplyEvaluated(Job& job, GroupRecord& group, const v1::CenterEvaluated& result, Instant now);
  void ApplyProfile(Job& job, GroupRecord& group, const v1::RankReport& report, Instant now);
  void ApplySilence(Job& job, GroupRecord& group, const v1::SilenceChanged& change, Instant now);
  void TakeLog(const Worker& worker, const v1::LogLines& lines, Instant now);

  // cluster_state_time.cc
  void Place(Instant now);
  void ApplyWait(Job& job, GroupRecord& group, const std::string& reason);
  // Which servers would hold the job's center if its first group started now?
  ServerChoice ChooseServersFor(const Job& job, Instant now) const;
  bool IsInUse(const std::string& key) const;
  void FixServers(Job& job, Instant now);
  void CheckWorkers(Instant now);
  void CheckServers(Instant now);
  void WorkerSilent(Worker& worker, Instant now);
  void LoseWorker(Worker& worker, Instant now);
  void ServerSilent(const std::string& key, Server& server, Instant now);
  void ServerAnswers(const std::string& key, Server& server, Instant now);
  void AddSilence(Job& job, const GroupRecord& group, const std::string& what, Instant since);
  void RemoveSilence(Job& job, const GroupRecord& group, const std::string& what);

  // cluster_state_parts.cc
  // The worker as PlaceGroups sees it if all its slots are free.
  static FreeWorker WholeWorker(const Worker& worker);
  void Start(Job& job, GroupRecord& group, const Placement& placement, Instant now);
  v1::StartGroup StartMessage(const Job& job, const GroupRecord& group) const;
  void PartIsReady(Job& job, GroupRecord& group, const GroupPart& part, Instant now);
  void StartRemotePart(Job& job, GroupRecord& group, const GroupPart& lead, const v1::RemoteStart& remote, Instant now);
  void EndPart(Job& job, GroupRecord& group, GroupPart& part, const GroupOutcome& outcome, Instant now);
  // Ends groups whose parts were not ready in time, and those whose end was held.
  void CheckParts(Instant now);
  // The workers of the group whose stream has ended, as "worker b is gone; "; empty if there are none.
  std::string GoneText(const GroupRecord& group) const;
  bool IsConnected(const std::string& worker) const;
  // Tells all workers that may be running a part of this incarnation to stop it.
  void StopParts(const Job& job, const GroupRecord& group, absl::string_view why);

  // cluster_state_servers.cc
  static bool Uses(const JobRecord& job, const std::string& key);
  // Why the process of this claim may not speak for its server; empty: it may.
  std::string Refusal(const ServerClaim& claim, absl::string_view version, Instant now);
  void TakeClaim(Server& server, const ServerClaim& claim, Instant now);
  void DialIfDue(Server& server, Instant now);
  void ServerReached(Server& server, Instant now);
  void ServerFailed(Server& server, const DialVerdict& verdict, Instant now);
  // Tells the users of unfinished jobs on this server.
  void TellJobsOf(const std::string& key, const std::string& text, Instant now);
  // Lets jobs of servers that have just been lost follow those that were reached at their addresses.
  void ReplaceLostServers(Instant now);
  std::string LiveServerAt(const ServerClaim& claim, Instant now) const;
  // Lets jobs follow a server that was reached: to its new address, or to the place of one that is gone.
  void FollowServer(const Server& server, Instant now);
  void MoveShard(Job& job, JobServer& shard, const Server& server, Instant now);
  void RestartGroups(Job& job, const std::string& why, Instant now);

  // cluster_state_forget.cc
  void ForgetOldJobs(Instant now);
  bool HaveHeardOfItsEnd(const Job& job, Instant now) const;
  // The bytes on disk of all jobs that servers have told of.
  std::map<std::string, uint64_t> DiskBytes() const;
  void ForgetJob(uint64_t number, absl::string_view why, Instant now);
  void KeepTrace(ForgottenJob job);
  // Null if the job was not forgotten.
  const ForgottenJob* FindForgotten(const std::string& job_id) const;
  // Adds what the server must do with the shards that it holds.
  void AddOrders(const Server& server, const v1::ServerHeartbeatRequest& request,
                 v1::ServerHeartbeatResponse& response);
  void ReportStrangers(Server& server, const v1::ServerHeartbeatRequest& request, Instant now);

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
  std::map<uint64_t, ForgottenJob> forgotten_;  // By number; at most ForgottenJob::kKeptMax.
  std::set<std::string> being_stored_;          // Submission ids between BeginSubmit and EndSubmit.
  // Jobs that failed while workers still ran their groups. Once these have ended, the log repeats the cause.
  std::set<std::string> last_words_due_;
  uint64_t next_number_ = 1;
  std::map<std::string, Worker> workers_;
  std::map<SessionId, std::string> worker_of_session_;
  SessionId next_session_ = 1;
  std::map<std::string, Server> servers_;  // By KeyOf(JobServer), which is the identity of each server that was heard.
  std::map<std::string, RefusedServer> refused_servers_;  // By instance.
  uint64_t next_dial_ = 1;
  std::string own_server_;                                // Its identity.
  absl::Duration last_tick_;                              // Steady.
  absl::Duration forget_at_ = -absl::InfiniteDuration();  // Steady time before which ForgetOldJobs does nothing.
  Effects effects_;
};

// Cuts a longer `text` to at most `bytes_max` bytes of whole UTF-8 characters and appends "...".
std::string Shortened(absl::string_view text, size_t bytes_max = ClusterState::kTextBytesMax);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_CLUSTER_STATE_H_
