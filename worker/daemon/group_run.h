#ifndef HOOKE_WORKER_DAEMON_GROUP_RUN_H_
#define HOOKE_WORKER_DAEMON_GROUP_RUN_H_

// One group running on this node: its folder, its launcher (mpirun) with all that comes from it, its ranks' reports.
// From the moment it is made until GroupEnded, which is its last event and comes in every case.
//
// Made and destroyed by WorkerDaemon. It has one thread of its own, and those of its process and of its server.

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
#include "worker/daemon/progress_filter.h"
#include "worker/daemon/rank_events_server.h"
#include "worker/daemon/rank_watch.h"
#include "worker/launch/launch_command.h"
#include "worker/launch/process.h"

namespace hooke {

struct GroupRunOptions {
  std::string groups_folder;  // WorkerFolder::groups().
  // What is the same for all groups of the daemon; ranks, files and folders are filled in.
  LaunchOptions launch;
  // `ranks` and `started` are filled in.
  RankWatchOptions watch;
  absl::Duration stop_grace = absl::Seconds(2);    // A rank has given up: the launcher is killed after so long.
  absl::Duration stuck_after = absl::Seconds(10);  // A launcher that lives so long after SIGKILL is spoken of.
  std::shared_ptr<spdlog::logger> logger;          // Not null.
};

// Called on the run's threads, without a lock held.
struct GroupRunCallbacks {
  std::function<void(v1::GroupEvent)> event;                                  // Group and number are not set.
  std::function<void(absl::string_view source, absl::string_view text)> log;  // A line of output.
  std::function<void()> ended;  // After the last event; the run may be destroyed, by another thread.
};

class GroupRun final {
 public:
  // Returns at once. `start` has been checked by CheckStartGroup, and its daemon_socket is filled in here.
  GroupRun(const v1::StartGroup& start, GroupRunOptions options, GroupRunCallbacks callbacks);
  // Stops the group if it still runs, and waits for its end.
  ~GroupRun();
  GroupRun(const GroupRun&) = delete;
  GroupRun& operator=(const GroupRun&) = delete;

  const v1::GroupId& id() const { return id_; }
  // Ends the group; `why` becomes its message. Returns at once; later calls change nothing.
  void Stop(const absl::Status& why);

 private:
  // Called by the server of the ranks' reports.
  absl::Status RankHello(const v1::RankHello& hello);
  void RankEvent(uint32_t rank, const v1::RankEvent& event);
  void RankStreamEnded(uint32_t rank);

  void Run();
  GroupVerdict RunToEnd();
  absl::StatusOr<std::unique_ptr<Process>> Launch(const GroupFolder& folder);
  ProcessEnd WatchUntilEnd(Process& process);
  // When to kill the launcher: now, or after `stop_grace`; never while nothing stops the group.
  absl::Time KillTime();
  void SayThatItIsStuck(pid_t launcher, absl::Time killed);
  void Tick();
  void ReadLine(absl::string_view line);
  void Report(uint32_t rank, const v1::RankEvent& event);

  const v1::GroupId id_;
  const std::string name_;  // "fashion-1-0-1".
  const GroupRunOptions options_;
  const GroupRunCallbacks callbacks_;
  v1::StartGroup start_;          // The run's thread.
  absl::Notification announced_;  // GroupStarted was sent: reports may follow.

  absl::Mutex mutex_;
  RankWatch watch_ ABSL_GUARDED_BY(mutex_);
  ProgressFilter filter_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_
      ABSL_GUARDED_BY(mutex_);  // Why the group was stopped from outside or by its watch; OK: it was not.
  LauncherVerdict launcher_said_ ABSL_GUARDED_BY(mutex_);
  std::string last_words_ ABSL_GUARDED_BY(mutex_);
  bool rank_spoke_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Which start of which group it is.
v1::GroupId IdOf(const v1::GroupStart& start);

// "<job>-<group>-<incarnation>".
std::string GroupName(const v1::GroupId& group);

// INVALID_ARGUMENT or RESOURCE_EXHAUSTED, with what is allowed, for a command that this worker cannot obey.
absl::Status CheckStartGroup(const v1::StartGroup& start, uint32_t slots);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_GROUP_RUN_H_
