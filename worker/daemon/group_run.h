#ifndef HOOKE_WORKER_DAEMON_GROUP_RUN_H_
#define HOOKE_WORKER_DAEMON_GROUP_RUN_H_

// One group running on this node, or one part of it: its folder, its launcher with all processes that the launcher
// starts, and the reports of its ranks. A run's last event is always GroupEnded.
//
// The launcher is mpirun. If a group runs on several workers, it is mpirun only on the first part's worker. On the
// others it is the MPI library's own daemon (orted, hydra_pmi_proxy or hydra_bstrap_proxy). A part reports PartReady,
// and its launcher starts at Launch. When mpirun wants a daemon on another node, the run sends the event RemoteStart.
//
// WorkerDaemon makes and destroys the run. A run has one thread of its own, and the threads of its Process, its
// RankEventsServer and its RankOutput.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "clocks/steady_condition.h"
#include "proto/coordinator.pb.h"
#include "spdlog/spdlog.h"
#include "worker/cores/node_cores.h"
#include "worker/daemon/cut_off.h"
#include "worker/daemon/group_folder.h"
#include "worker/daemon/group_part.h"
#include "worker/daemon/last_lines.h"
#include "worker/daemon/progress_filter.h"
#include "worker/daemon/rank_events_server.h"
#include "worker/daemon/rank_watch.h"
#include "worker/file_cache/coordinator_files.h"
#include "worker/file_cache/file_cache.h"
#include "worker/gpus/node_gpus.h"
#include "worker/launch/exit_order.h"
#include "worker/launch/launch_command.h"
#include "worker/launch/launcher_output.h"
#include "worker/launch/process.h"
#include "worker/launch/rank_output.h"

namespace hooke {

struct GroupRunOptions {
  std::string groups_folder;  // WorkerFolder::groups().
  // Launch options that all groups of the daemon share. GroupRun fills in the ranks, their arguments and the folders.
  LaunchOptions launch;
  // GroupRun fills in `ranks` and `started`.
  RankWatchOptions watch;
  std::string worker;          // The worker's name, for people.
  std::string site;            // The worker's site. A job may give its command other arguments and variables there.
  FileCache* files = nullptr;  // The files of jobs on this node. Not null; it outlives the run.
  FetchOptions fetch;
  // The cores to which ranks are bound. Null: they are not bound. It outlives the run.
  const NodeCores* cores = nullptr;
  // The GPUs that are divided among ranks. Null: ranks see what the worker sees. It outlives the run.
  NodeGpus* gpus = nullptr;
  // A part that waits for its launch says this often that it is ready.
  absl::Duration ready_again = absl::Seconds(30);
  // How long the ranks of a group that is to leave (Leave) have until they are stopped; 0: they are stopped at once. To
  // this the job's averaging.grace_seconds are added, because the last exchange may wait for other groups.
  absl::Duration leave_within = absl::ZeroDuration();
  // Returns what this worker knows of the coordinator; called from the run's thread, without a lock held. Empty: the
  // group is never cut off.
  std::function<CoordinatorContact()> contact;
  // After a rank has reported its failure, the launcher has this long to end by itself before it is killed.
  absl::Duration stop_grace = absl::Seconds(2);
  // If the launcher still lives this long after SIGKILL, the daemon logs it and reports it to the coordinator.
  absl::Duration stuck_after = absl::Seconds(10);
  std::shared_ptr<spdlog::logger> logger;  // Not null.
};

// Called on the run's threads, without a lock held.
struct GroupRunCallbacks {
  // The event's group and number are not set.
  std::function<void(v1::GroupEvent)> event;
  std::function<void(absl::string_view source, absl::string_view text)> log;  // Called for each line of output.
  std::function<void()> ended;  // Called after the last event. From then on another thread may destroy the run.
};

class GroupRun final {
 public:
  // Starts the run and returns at once. `start` has passed CheckStartGroup. GroupRun fills in the start's
  // daemon_socket.
  GroupRun(const v1::StartGroupCommand& start, GroupRunOptions options, GroupRunCallbacks callbacks);
  // Stops the group if it still runs, and waits for its end.
  ~GroupRun();
  GroupRun(const GroupRun&) = delete;
  GroupRun& operator=(const GroupRun&) = delete;

  const v1::GroupId& id() const { return id_; }
  // Starts the launcher of a part. INVALID_ARGUMENT: the command does not suit the part. Later calls change nothing.
  absl::Status Launch(const v1::LaunchPart& command);
  // Ends the group. GroupEnded then has the code and message of `why`, unless all ranks are done or the run stopped the
  // group itself before. Returns at once; later calls change nothing.
  void Stop(const absl::Status& why);
  // Lets the ranks leave by themselves, so that nothing of this start is lost. If they have not left within
  // `leave_within`, does what Stop does. Does that at once if there is nothing to lose: no rank has said hello, or the
  // group only evaluates. Returns at once; later calls change nothing.
  void Leave(const absl::Status& why);

 private:
  static constexpr size_t kTextBytesMax = 4096;  // Most bytes of a rank's message, and of the one of the group's end.

  // ---- group_run_reports.cc
  // The RankEventsServer of the ranks' reports calls RankHello, RankEvent and RankStreamEnded.
  absl::Status RankHello(const v1::RankHello& hello);
  void RankEvent(uint32_t rank, const v1::RankEvent& event);
  void RankStreamEnded(uint32_t rank);
  // Notes that rank 0 has said how it began. Returns false if it had before.
  bool NoteBegun();

  void Run();
  GroupVerdict RunToEnd();
  absl::Status StartRemote(const v1::StartRemoteRequest& request);
  // Waits until the coordinator's command to start the part's launcher comes.
  absl::Status AwaitLaunch();
  absl::Status WhyStopped();  // OK: the group was not stopped.
  void SetRanks(RankEventsServer* ranks);
  // If the job has files, fetches them, makes the group's copy of them, in which the command runs, and logs this.
  absl::Status PrepareFiles(const GroupFolder& folder);
  // The folder in which the command runs.
  std::string CommandFolder(const GroupFolder& folder) const;
  // Takes cores for the ranks of this part, sets `launch` to bind them, and logs who got which.
  void TakeCores(LaunchOptions& launch);
  // Takes GPUs for the ranks of this part, sets `launch` to show each rank only its own, and logs who got which.
  void TakeGpus(LaunchOptions& launch);
  // Makes what the launcher and the ranks need in the group's folder.
  absl::StatusOr<LaunchOptions> Prepare(const GroupFolder& folder);
  absl::StatusOr<std::unique_ptr<Process>> StartLauncher(const LaunchOptions& launch);
  ProcessEnd WatchUntilEnd(Process& process);
  // Returns the time at which to kill the launcher. That is now, or after `stop_grace` if the launcher ends the group
  // by itself. It is InfiniteFuture while nothing stops the group.
  absl::Time KillTime();
  void SayThatItIsStuck(pid_t launcher, absl::Time killed);
  void Tick();
  // Makes the pipes and the script of a command's ranks, and sets `launch` to start it.
  absl::Status PrepareCommand(const GroupFolder& folder, LaunchOptions& launch);
  void ReadLine(absl::string_view line);
  // Takes a line that a command's rank printed.
  void ReadRankLine(const RankOutput::Line& line);
  void Report(uint32_t rank, const v1::RankEvent& event);

  const v1::GroupId id_;
  const std::string name_;  // "fashion-1-0-1".
  const bool command_;      // Whether the ranks are a job's command.
  const bool trains_;       // The group trains, so stopping it without leave would lose steps.
  const absl::Duration leave_within_;
  const PartHere part_;
  const std::vector<LaunchHost> hosts_;  // The nodes of all parts; empty if this worker runs all ranks.
  const std::string mark_;               // The mark of CommandScript.
  const GroupRunOptions options_;
  const GroupRunCallbacks callbacks_;
  const std::string launcher_;               // The launcher's name for people.
  const absl::Time begun_;                   // On SteadyTime's clock: when the command to start the group came.
  absl::Duration fetching_;                  // Only the run's thread uses it: how long the job's files took.
  v1::StartGroupCommand start_;              // Only the run's thread uses it.
  std::unique_ptr<FileCache::Use> files_;    // Only the run's thread uses it. Set while the group has files.
  std::unique_ptr<HeldGpus> gpus_;           // As cores_, if `gpus` is given.
  std::unique_ptr<HeldCores> cores_;         // Only the run's thread uses it. Set while ranks run, if `cores` is given.
  std::unique_ptr<RankOutput> rank_output_;  // Only the run's thread uses it. Set while a command runs.
  // Notified when GroupStarted was sent or the launch failed. Ranks' hellos wait for it.
  absl::Notification announced_;

  absl::Mutex mutex_;
  SteadyCondition told_;  // `launch_` or `stopped_` has been set.
  RankWatch watch_ ABSL_GUARDED_BY(mutex_);
  ExitOrder exit_order_ ABSL_GUARDED_BY(mutex_);
  bool said_begun_ ABSL_GUARDED_BY(mutex_) = false;  // Rank 0 has said how it began.
  ProgressFilter filter_ ABSL_GUARDED_BY(mutex_);
  MissedServers missed_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_
      // Why the group was stopped, from outside or by watch_; OK: it was not stopped.
      ABSL_GUARDED_BY(mutex_);
  RankEventsServer* ranks_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Null before the ranks can report, and afterwards.
  absl::Status leaves_ ABSL_GUARDED_BY(mutex_);                // Why the group is to leave; OK: it is not.
  absl::Time leave_by_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // On SteadyTime's clock.
  std::optional<v1::LaunchPart> launch_ ABSL_GUARDED_BY(mutex_);          // Set once the part is to be launched.
  LauncherVerdict launcher_said_ ABSL_GUARDED_BY(mutex_);
  std::string last_words_ ABSL_GUARDED_BY(mutex_);
  bool rank_spoke_ ABSL_GUARDED_BY(mutex_) = false;
  LastLines error_lines_ ABSL_GUARDED_BY(mutex_);  // The last lines that a command's ranks wrote to stderr.
  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_GROUP_RUN_H_
