#ifndef HOOKE_SERVER_CLUSTER_CLUSTER_STATE_H_
#define HOOKE_SERVER_CLUSTER_CLUSTER_STATE_H_

// The coordinator's state machine: each call maps (state, event, now) to (new state, Effects). It does no I/O and has
// no threads, clock or lock. The Coordinator calls it under its mutex and carries out the effects. The decisions
// themselves are in job_spec_check.h, choose_servers.h, server_dial.h, lifecycle.h, liveness.h, keep_limits.h and in
// server/scheduling/.
//
// Its sources:
// - cluster_state.cc: jobs.
// - cluster_state_workers.cc: workers.
// - cluster_state_events.cc: workers' reports.
// - cluster_state_time.cc: ticks and servers.
// - cluster_state_place.cc: the placement of groups.
// - cluster_state_owners.cc: owners of jobs, and the order of the queue.
// - cluster_state_preempt.cc: groups that leave for jobs of higher priority.
// - cluster_state_parts.cc: starts of groups, and groups that run on several workers.
// - cluster_state_hold.cc: groups that are held, and the last lines that groups print.
// - cluster_state_drain.cc: workers that users drain.
// - cluster_state_scale.cc: jobs whose number of groups changes.
// - cluster_state_resize.cc: jobs whose number of groups follows the room.
// - cluster_state_avoid.cc: workers on which groups die.
// - cluster_state_back.cc: groups that were given up with their worker, which comes back.
// - cluster_state_stragglers.cc: groups that are slower than their peers.
// - cluster_state_sites.cc: sites that get their workers from a batch system.
// - cluster_state_servers.cc: which server is at an address, and jobs whose server moves to another address.
// - cluster_state_forget.cc: jobs that are forgotten, and their shards on servers.
//
// It keeps jobs, workers, rooms, servers, sites, the uses of owners, and links in tables. Each table is a class in a
// file of its own, as job_table.h. The functions of cluster_view.h make from the tables what users see.

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
#include "clocks/instant.h"
#include "proto/coordinator.pb.h"
#include "server/cluster/cluster_figures.h"
#include "server/cluster/cluster_view.h"
#include "server/cluster/deadlines.h"
#include "server/cluster/effects.h"
#include "server/cluster/job_table.h"
#include "server/cluster/keep_limits.h"
#include "server/cluster/known.h"
#include "server/cluster/lifecycle.h"
#include "server/cluster/link_table.h"
#include "server/cluster/liveness.h"
#include "server/cluster/owner_uses.h"
#include "server/cluster/room_table.h"
#include "server/cluster/server_dial.h"
#include "server/cluster/server_table.h"
#include "server/cluster/site_table.h"
#include "server/cluster/worker_table.h"
#include "server/records/job_store.h"
#include "server/records/records.h"
#include "server/scheduling/avoidance.h"
#include "server/scheduling/fair_share.h"
#include "server/scheduling/group_count.h"
#include "server/scheduling/placement.h"
#include "server/scheduling/preemption.h"
#include "server/scheduling/room.h"
#include "server/scheduling/straggler.h"

namespace hooke {

struct ClusterStateOptions {
  LivenessOptions liveness;
  RestartOptions restart;
  AvoidOptions avoid;
  StragglerOptions straggler;
  ResizeOptions resize;
  // Jobs of one priority are put in order by what their owners have used. Use counts half after this time.
  absl::Duration fair_half_life = absl::Hours(24);
  OwnerSlots owner_slots;  // The most slots that owners may use at once.
  KeepLimits keep;         // Beyond these limits, the jobs that ended first are forgotten.
  // Limits for the number of jobs that wait or run, and for the bytes of their specs. Beyond either, submissions are
  // refused.
  size_t unfinished_jobs_max = 2000;
  size_t unfinished_bytes_max = 256 << 20;
  // Where the coordinator listens if other machines reach it and need no token; "" otherwise. Whoever can submit a job
  // with a command runs a program as the workers' user. So such jobs are refused if this is set.
  std::string reached_by_others_at;
  // For tests: each placement computes its cached rooms and tallies anew, and ends the process if a cached one differs.
  bool compare_kept = false;
};

class ClusterState {
 public:
  static constexpr size_t kNoticesMax = 20;
  // Why groups leave when their job's number of groups changes.
  static constexpr char kLeavesToScale[] = "the number of groups changes";
  // Why groups do not start while their job's number of groups changes.
  static constexpr char kOthersLeave[] = "the job's other groups leave first, because the number of groups changes";

  // The workers of running groups have one lease from `now` on to connect again. New jobs get higher numbers than those
  // that are stored.
  ClusterState(ClusterStateOptions options, StoredJobs stored, Instant now);

  // ---- Jobs ----

  // Makes new jobs get numbers above this one.
  void ReserveNumbers(uint64_t highest) { jobs_.ReserveNumbers(highest); }

  struct Submission {
    std::string job_id;
    bool is_new = false;
  };
  // Checks a submission. If it is new, the effects have the record of its job to store. INVALID_ARGUMENT: the
  // submission's id or the spec is wrong. FAILED_PRECONDITION: this cluster cannot run the job. UNAVAILABLE: the same
  // submission is being stored. RESOURCE_EXHAUSTED: too many jobs wait or run, or their specs are too large together.
  absl::StatusOr<Submission> BeginSubmit(const v1::SubmitRequest& request, Instant now);
  // Completes a submission of the effects. If `stored`, the job now exists. Otherwise there is no such job, but its
  // number stays used.
  void EndSubmit(const JobRecord& job, bool stored, Instant now);
  // Cancels the job and stops its groups. A job that has ended stays as it is. NOT_FOUND: no such job.
  absl::Status Cancel(const std::string& job_id, Instant now);

  // Changes the number of a job's groups. Returns before the present ones have left. Errors are those of
  // Coordinator.ScaleJob (proto/coordinator.proto).
  absl::Status Scale(const v1::ScaleJobRequest& request, Instant now);

  // Lets the held groups of a job start again. Returns how many these are. NOT_FOUND: no such job. FAILED_PRECONDITION:
  // it has ended.
  absl::StatusOr<uint32_t> Resume(const std::string& job_id, Instant now);

  // Forgets a job that has ended. NOT_FOUND: no such job. FAILED_PRECONDITION: it has not ended.
  absl::Status Forget(const std::string& job_id, Instant now);

  // ---- Workers ----

  // Begins a worker's session, after its hello. INVALID_ARGUMENT: a field is out of range. ALREADY_EXISTS: another live
  // daemon has that name. RESOURCE_EXHAUSTED: there are known::kNodesMax workers already.
  absl::StatusOr<SessionId> Hello(const v1::WorkerHello& hello, Instant now);
  // Takes a message that a worker sent after its hello. ABORTED: the session was ended, for example by a newer one.
  // INVALID_ARGUMENT: a worker may not send this message. After an error the caller ends the session.
  absl::Status Message(SessionId session, const v1::WorkerMessage& message, Instant now);
  // Notes that the session's stream has ended. The worker's groups are left alone until its lease runs out.
  void Gone(SessionId session, Instant now);
  // Notes that the caller ends the session, and why.
  void EndSession(SessionId session, absl::string_view why, Instant now);

  // Drains a worker, or takes the drain back. Returns the worker. NOT_FOUND: no such worker. INVALID_ARGUMENT: `drain`
  // is not set.
  absl::StatusOr<v1::NodeStatus> Drain(const std::string& worker, v1::Drain drain, Instant now);

  // ---- Servers and time ----

  void SetOwnServer(const std::string& server_id) { servers_.SetOwn(server_id); }
  // Takes a server's heartbeat. The answer names jobs of which the server is to free its shard. The caller must remove
  // from the answer those jobs of which the store has no trace yet. A server is known by its identity. It gets no shard
  // before the coordinator has reached it at its address. INVALID_ARGUMENT: a field is out of range.
  // FAILED_PRECONDITION: an older server, without an identity. RESOURCE_EXHAUSTED: there are known::kNodesMax servers
  // already.
  absl::StatusOr<v1::ServerHeartbeatResponse> ServerHeartbeat(const v1::ServerHeartbeatRequest& request, Instant now);
  // Takes the notes of a site's agent, and returns the jobs of its site. INVALID_ARGUMENT: a field is out of range.
  // ALREADY_EXISTS: another live agent speaks for the site. RESOURCE_EXHAUSTED: there are known::kNodesMax sites
  // already.
  absl::StatusOr<v1::SiteHeartbeatResponse> SiteHeartbeat(const v1::SiteHeartbeatRequest& request, Instant now);
  // Takes the answer to a dial that the effects asked for. The caller must answer each dial within a bounded time.
  void ServerDialed(const ServerDial& dial, const DialAnswer& answer, Instant now);
  // Does what time alone makes due: it reports silences, ends leases, starts retries and forgets old jobs. Call it
  // about every 100 ms.
  void Tick(Instant now);

  // ---- What people see ----

  // The jobs. They stay valid until the next call that changes anything.
  const JobTable& jobs() const { return jobs_; }
  std::vector<v1::NodeStatus> Nodes(Instant now) const;
  std::vector<v1::NodeLink> Links() const { return links_.All(); }
  ClusterFigures Figures(const FigureLimits& limits, Instant now) const {
    return FiguresOf(jobs_, workers_, servers_, limits, now);
  }

  Effects TakeEffects() { return std::exchange(effects_, {}); }
  // Returns whether the job has ended and, if it failed, the log need not repeat the cause any more.
  bool LogHasEnded(const std::string& job_id) const;

 private:
  using LiveGroup = known::LiveGroup;
  using Job = known::Job;
  using Worker = known::Worker;
  using Server = known::Server;

  // cluster_state.cc
  absl::Status CheckRoomFor(const v1::JobSpec& spec);
  // FAILED_PRECONDITION: no worker, and no workers together, have slots enough for a group.
  absl::Status CheckWorkersFor(const v1::JobSpec& spec) const;
  void Changed(Job& job) {
    jobs_.NoteChange(job);
    effects_.shown.insert(job.record.job_id);
  }
  void Store(Job& job);
  // Shows users a notice in the job's status, and logs it.
  void Notice(Job& job, absl::string_view text, Instant now);
  void EndGroup(Job& job, GroupRecord& group, const GroupOutcome& outcome, Instant now);
  void LoseGroup(Job& job, GroupRecord& group, absl::string_view why, Instant now);
  void ApplyGroupDecision(Job& job, GroupRecord& group, const GroupDecision& decision, Instant now);
  void ApplyJobDecision(Job& job, Instant now);
  void EndJob(Job& job, v1::JobState state, absl::string_view reason, Instant now);
  void StopOccupants(const std::string& job_id, absl::string_view reason);
  // If the job failed just now and workers still run its groups, SayLastWords will log the cause again after these
  // groups have ended.
  void AwaitLastWords(const Job& job, Instant now);
  void SayLastWords(Instant now);

  // cluster_state_hold.cc
  // Notes what follows an end that may have been like the ones before it.
  void NoteCause(LiveGroup& live, GroupRecord& group, const GroupDecision& decision);

  // cluster_state_back.cc
  // Loses a group whose worker may still run it.
  void GiveUp(Job& job, GroupRecord& group, const Worker& worker, const std::string& why, Instant now);
  // Lets a group that was given up go on where it ran.
  void TakeBack(Job& job, GroupRecord& group, const Worker& worker, Instant now);
  // Notes that the group, which was given up, does not run any more.
  void NoteNotRunning(Job& job, const GroupRecord& group);
  // A worker has come back, and others of its site were lost at about the same time. Lets the groups of those wait a
  // moment, so that their own workers can come back, too. `before` says what the coordinator knew of `back`.
  enum class Before { kKnown, kLost, kUnknown };
  void AwaitOthers(const Worker& back, Before before, Instant now);

  // cluster_state_workers.cc
  void TakeOver(Worker& worker, const v1::WorkerHello& hello, Instant now);
  void ConfirmMissing(Worker& worker, Instant now);
  void WorkerAnswers(Worker& worker, Instant now);
  absl::Status Batch(SessionId session, const v1::WorkerMessages& batch, Instant now);

  // cluster_state_events.cc
  void Event(Worker& worker, const v1::GroupEvent& event, Instant now);
  void ApplyEvent(Job& job, GroupRecord& group, GroupPart& part, const v1::GroupEvent& event, Instant now);
  void ApplyStarted(Job& job, GroupRecord& group, const GroupPart& part, const v1::GroupEvent& event, Instant now);
  void ApplyBegun(Job& job, GroupRecord& group, const GroupPart& part, const v1::GroupEvent& event, Instant now);
  void ApplyReport(Job& job, GroupRecord& group, const GroupPart& part, const v1::RankReport& report, Instant now);
  void ApplyAbsent(Job& job, GroupRecord& group, const v1::RankReport& report);
  void ApplyProgress(Job& job, GroupRecord& group, const v1::RankProgress& reported, Instant now);
  void NoteExchanged(Job& job, GroupRecord& group, const v1::RankProgress& progress, Instant now);
  v1::RankProgress Completed(Job& job, const GroupRecord& group, const v1::RankProgress& progress, Instant now);
  void AddPoint(Job& job, const GroupRecord& group, const v1::RankProgress& progress, Instant now);
  void ApplyEvaluated(Job& job, GroupRecord& group, const v1::CenterEvaluated& result, Instant now);
  void ApplyProfile(Job& job, GroupRecord& group, const v1::RankReport& report, Instant now);
  void ApplyLinks(const GroupRecord& group, const GroupPart& part, const v1::MeasuredLinks& links, Instant now);
  void ApplySilence(Job& job, GroupRecord& group, const v1::SilenceChanged& change, Instant now);
  void TakeLog(const Worker& worker, const v1::LogLines& lines, Instant now);

  // cluster_state_time.cc
  bool IsInUse(const std::string& key) const;
  void FixServers(Job& job, Instant now);
  void CheckWorkers(Instant now);
  void CheckWorker(Worker& worker, Instant now);
  void CheckServers(Instant now);
  void WorkerSilent(Worker& worker, Instant now);
  enum class Groups { kHaveEnded, kMayLive };
  // `groups` says whether the worker's groups may still run.
  void LoseWorker(Worker& worker, const std::string& why, Groups groups, Instant now);
  void ServerSilent(const std::string& key, Server& server, Instant now);
  void ServerAnswers(const std::string& key, Server& server, Instant now);
  void AddSilence(Job& job, const GroupRecord& group, const std::string& what, Instant since);
  void RemoveSilence(Job& job, const GroupRecord& group, const std::string& what);

  // cluster_state_place.cc
  // A group that waits. `reason` is set if it is not placed.
  struct WaitingInQueue {
    Job* job = nullptr;
    uint32_t group = 0;
    std::string reason;
  };
  // Starts those of the waiting groups that can start. Events call it, and ticks when a next try is due or estimates
  // may have changed. PlaceSoon makes the next tick call it.
  void Place(Instant now);
  void PlaceSoon() { place_at_ = -absl::InfiniteDuration(); }
  // Returns why no group of the job can start, whatever room there is. Empty: groups can. `choices` caches the choice
  // of servers for each number of servers.
  using ServerChoices = std::map<uint32_t, ServerChoice>;
  std::string WhyNotYet(const Job& job, ServerChoices& choices, Instant now) const;
  // Returns why the job's groups do not start yet while their number changes. Empty: it does not change.
  std::string WhyChangeWaits(const Job& job) const;
  // Sets the reasons of groups that wait, in the order of the queue, and the positions of their jobs.
  void ShowQueue(const std::vector<WaitingInQueue>& waiting);

  // Computes the rooms that have changed anew, and returns all.
  Rooms& RefreshRooms(Instant now);

  // cluster_state_owners.cc
  // Adds what owners have used since the last call, and counts what they use now.
  void ChargeOwners(Instant now);
  Quotas QuotasOf(const std::vector<Job*>& jobs) const;
  // FAILED_PRECONDITION: a group is larger than its owner's quota.
  absl::Status CheckQuota(const v1::JobSpec& spec) const;
  std::vector<Job*> UnfinishedInOrder();

  // cluster_state_preempt.cc
  // Tells running groups to leave so that the waiting ones, which lack room, can start, if they may.
  void Preempt(const std::vector<std::pair<const WaitingGroup*, const Job*>>& waiting, Instant now);

  // cluster_state_avoid.cc
  // Notes that a group has ended badly, on the worker that is to blame. If it is not known which, it is on none.
  void NoteFailure(const Job& job, const GroupRecord& group, const GroupOutcome& outcome, Instant now);
  void NoteDeath(Worker& worker, Death death, Instant now);

  // cluster_state_parts.cc
  void Start(Job& job, GroupRecord& group, const Placement& placement, Instant now);
  void PartIsReady(Job& job, GroupRecord& group, const GroupPart& part, Instant now);
  void StartRemotePart(Job& job, GroupRecord& group, const GroupPart& lead, const v1::RemoteStart& remote, Instant now);
  void EndPart(Job& job, GroupRecord& group, GroupPart& part, const GroupOutcome& outcome, Instant now);
  // Ends groups of which a part was not ready at `ready_by`, and groups whose `outcome_due` has come.
  void CheckParts(Instant now);
  void CheckParts(Job& job, GroupRecord& group, Instant now);
  // Sees to it that CheckParts looks at the group as soon as it has something to do.
  void ExpectParts(const Job& job, const GroupRecord& group);
  // kLeave: the ranks may first make their last exchange and leave by themselves.
  enum class StopHow { kAtOnce, kLeave };
  // Tells all connected workers that may be running a part of this incarnation to stop it.
  void StopParts(const Job& job, const GroupRecord& group, absl::string_view why, StopHow how = StopHow::kAtOnce);

  // cluster_state_sites.cc
  void TakeNotes(const v1::SiteHeartbeatRequest& request, Instant now);
  v1::SiteHeartbeatResponse JobsAt(const std::string& site, Instant now);

  // cluster_state_drain.cc
  // Asks the groups there to leave that are to leave: all if the worker ends or is drained NOW, and those of jobs whose
  // number of groups changes. Idempotent.
  void AskToLeave(const Worker& worker, Instant now);
  void AskToLeave(const Worker& worker, Job& job, const GroupRecord& group, Instant now);
  // Takes the end of a group that was told to leave its workers.
  void Leave(Job& job, GroupRecord& group, Instant now);
  // cluster_state_scale.cc
  // Begins the next generation if one is wanted, no group is placed, and all servers have ended the present one. It
  // replaces all of the job's groups, so only Place calls it.
  void BeginGenerationIfDue(Job& job, Instant now);
  // Takes a server's answers about generations that end.
  void TakeClosed(const std::string& key, const v1::ServerHeartbeatRequest& request, Instant now);
  // Adds to `response` the generations that this server is to end, and about which it has not answered yet.
  void AddGenerationEnds(const std::string& key, v1::ServerHeartbeatResponse& response);
  // Asks the groups to leave, so that a generation of these groups can begin.
  void ChangeGroups(Job& job, const v1::GroupsSpec& groups, Instant now);

  // cluster_state_resize.cc
  // A job whose number of groups may change, with what a placement sees of it.
  struct Resized {
    Job* job = nullptr;
    JobSeen seen;
    // The groups that the job could get on top of its present number, each with the index of its kind.
    std::vector<std::pair<size_t, WaitingGroup>> probes;
  };
  std::vector<Resized> ResizedJobs(const std::vector<Job*>& jobs);
  static Resized ResizedJob(Job& job);
  // Returns whether nothing of the job is silent, and all workers of its groups may get groups. Otherwise a change of
  // its groups would wait, or would move some to workers that have no room for them.
  bool MayChange(const Job& job) const;
  // Adds a group of the job that waits, and what the placement gave it.
  static void NoteWaiting(Resized& resized, uint32_t group, const Placement& placement);
  // A job of which no group is to start now.
  struct Barred {
    std::string why;
    // The job waits until more room is free, so groups of other jobs may be asked to leave.
    bool wants_room = false;
  };
  // Changes the numbers of groups that follow the room. Returns the jobs whose numbers change, and those that wait for
  // more room before they begin. `placements` are those of `queue`, then those of the probes.
  std::map<const Job*, Barred> ResizeJobs(std::vector<Resized>& resized, const std::vector<const WaitingGroup*>& queue,
                                          const std::vector<Placement>& placements, Instant now);
  // Returns whether the number of the job's groups changes.
  bool ResizeIfDue(Resized& resized, Instant now);

  // cluster_state_stragglers.cc
  void NoteWork(Job& job, GroupRecord& group, const v1::RankProgress& progress, Instant now);
  void MoveStraggler(Job& job, GroupRecord& group, Instant now);

  // cluster_state_servers.cc
  void ServerReached(Server& server, Instant now);
  void ServerFailed(Server& server, const DialVerdict& verdict, Instant now);
  // Shows `text` as a notice in all unfinished jobs that use this server.
  void TellJobsOf(const std::string& key, const std::string& text, Instant now);
  // Moves the shards of servers that have just been lost to the servers that were reached at their addresses.
  void ReplaceLostServers(Instant now);
  // Updates the jobs of a server that was reached. If the server has moved, its jobs get its new address. If another
  // server at that address is gone, this server takes over the shards of that one.
  void FollowServer(const Server& server, Instant now);
  void MoveShard(Job& job, JobServer& shard, const Server& server, Instant now);
  void RestartGroups(Job& job, const std::string& why, Instant now);

  // cluster_state_forget.cc
  void ForgetOldJobs(Instant now);
  void ForgetJob(Job& job, absl::string_view why, Instant now);
  // Adds to `response` which of the server's jobs have ended, and which were forgotten.
  void AddOrders(const Server& server, const v1::ServerHeartbeatRequest& request,
                 v1::ServerHeartbeatResponse& response);
  void ReportStrangers(Server& server, const v1::ServerHeartbeatRequest& request, Instant now);

  const ClusterStateOptions options_;
  JobTable jobs_;
  WorkerTable workers_;
  RoomTable rooms_;
  ServerTable servers_;
  SiteTable sites_;
  OwnerUses uses_;
  LinkTable links_;
  std::set<std::string> being_stored_;  // Submission ids between BeginSubmit and EndSubmit.
  // Jobs that failed while workers still ran their groups. Once these have ended, the log repeats the cause.
  std::set<std::string> last_words_due_;
  // Numbers of the jobs that are to have other groups. Those that have got them are taken out when a server is heard.
  std::set<uint64_t> changing_jobs_;
  // Times at which CheckParts looks at a group. The key is the job's number and the group's index.
  Deadlines<std::pair<uint64_t, uint32_t>> parts_due_;
  absl::Duration last_tick_;                              // Steady.
  absl::Duration place_at_ = -absl::InfiniteDuration();   // Steady time of the next Place by a tick.
  absl::Duration forget_at_ = -absl::InfiniteDuration();  // Steady time before which ForgetOldJobs does nothing.
  Effects effects_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_CLUSTER_STATE_H_
