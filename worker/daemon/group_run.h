#ifndef HOOKE_WORKER_DAEMON_GROUP_RUN_H_
#define HOOKE_WORKER_DAEMON_GROUP_RUN_H_

// One group running on this node: its folder, its launcher (mpirun) with all processes that the launcher starts, and
// the reports of its ranks. A run's last event is always GroupEnded.
//
// WorkerDaemon makes and destroys it. It has one thread of its own, and those of its process and of its server.

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
#include "proto/coordinator.pb.h"
#include "spdlog/spdlog.h"
#include "worker/daemon/group_folder.h"
#include "worker/daemon/last_lines.h"
#include "worker/daemon/progress_filter.h"
#include "worker/daemon/rank_events_server.h"
#include "worker/daemon/rank_watch.h"
#include "worker/launch/launch_command.h"
#include "worker/launch/process.h"
#include "worker/launch/rank_output.h"

namespace hooke {

struct GroupRunOptions {
  std::string groups_folder;  // WorkerFolder::groups().
  // Launch options that all groups of the daemon share. GroupRun fills in the ranks, their arguments and the folders.
  LaunchOptions launch;
  // GroupRun fills in `ranks` and `started`.
  RankWatchOptions watch;
  // After a rank has reported its failure, the launcher has this long to end by itself before it is killed.
  absl::Duration stop_grace = absl::Seconds(2);
  // If the launcher still lives this long after SIGKILL, the daemon logs it and reports it to the coordinator.
  absl::Duration stuck_after = absl::Seconds(10);
  std::shared_ptr<spdlog::logger> logger;  // Not null.
};

// Called on the run's threads, without a lock held.
struct GroupRunCallbacks {
  std::function<void(v1::GroupEvent)> event;                                  // The event's group and number are not
                                                                              // set.
  std::function<void(absl::string_view source, absl::string_view text)> log;  // Called for each line of output.
  std::function<void()> ended;  // Called after the last event. From then on another thread may destroy the run.
};

class GroupRun final {
 public:
  // Starts the run and returns at once. `start` has passed CheckStartGroup. GroupRun fills in its daemon_socket.
  GroupRun(const v1::StartGroup& start, GroupRunOptions options, GroupRunCallbacks callbacks);
  // Stops the group if it still runs, and waits for its end.
  ~GroupRun();
  GroupRun(const GroupRun&) = delete;
  GroupRun& operator=(const GroupRun&) = delete;

  const v1::GroupId& id() const { return id_; }
  // Ends the group; `why` becomes the message of GroupEnded. Returns at once; later calls change nothing.
  void Stop(const absl::Status& why);

 private:
  // RankHello, RankEvent and RankStreamEnded are called by the server of the ranks' reports.
  absl::Status RankHello(const v1::RankHello& hello);
  void RankEvent(uint32_t rank, const v1::RankEvent& event);
  void RankStreamEnded(uint32_t rank);

  void Run();
  GroupVerdict RunToEnd();
  absl::StatusOr<std::unique_ptr<Process>> Launch(const GroupFolder& folder);
  ProcessEnd WatchUntilEnd(Process& process);
  // When to kill the launcher: now, or after `stop_grace` if it ends the group by itself. InfiniteFuture while nothing
  // stops the group.
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
  const std::string name_;       // "fashion-1-0-1".
  const bool command_;           // Whether the ranks are a job's command.
  const std::string exit_mark_;  // The mark of CommandScript.
  const GroupRunOptions options_;
  const GroupRunCallbacks callbacks_;
  v1::StartGroup start_;                     // Only the run's thread uses it.
  std::unique_ptr<RankOutput> rank_output_;  // As start_. Set while a command runs.
  absl::Notification announced_;  // Notified when GroupStarted was sent or the launch failed. Ranks' hellos wait for
                                  // it.

  absl::Mutex mutex_;
  RankWatch watch_ ABSL_GUARDED_BY(mutex_);
  ProgressFilter filter_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_
      // Why the group was stopped, from outside or by watch_; OK: it was not stopped.
      ABSL_GUARDED_BY(mutex_);
  LauncherVerdict launcher_said_ ABSL_GUARDED_BY(mutex_);
  std::string last_words_ ABSL_GUARDED_BY(mutex_);
  bool rank_spoke_ ABSL_GUARDED_BY(mutex_) = false;
  LastLines error_lines_ ABSL_GUARDED_BY(mutex_);  // Of a command's ranks.
  std::thread thread_;
};

// Returns the job, the group and the incarnation of `start`.
v1::GroupId IdOf(const v1::GroupStart& start);

// "<job>-<group>-<incarnation>".
std::string GroupName(const v1::GroupId& group);

// OK if this worker can obey the command. Otherwise INVALID_ARGUMENT, RESOURCE_EXHAUSTED or FAILED_PRECONDITION, with
// what is allowed. `allow_commands` is WorkerOptions::allow_commands.
absl::Status CheckStartGroup(const v1::StartGroup& start, uint32_t slots, bool allow_commands);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_GROUP_RUN_H_
