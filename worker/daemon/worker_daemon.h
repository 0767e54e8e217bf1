#ifndef HOOKE_WORKER_DAEMON_WORKER_DAEMON_H_
#define HOOKE_WORKER_DAEMON_WORKER_DAEMON_H_

// A node's worker. It keeps a session with the coordinator, starts and stops groups on the coordinator's commands, and
// reports the groups' events. Groups go on while the coordinator is away, unless they reach no server either
// (cut_off.h). Several workers fit in one process.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/steady_condition.h"
#include "spdlog/spdlog.h"
#include "wire/cluster_token.h"
#include "wire/http/http_server.h"
#include "wire/metrics/families.h"
#include "wire/metrics/folder_space.h"
#include "worker/cores/node_cores.h"
#include "worker/daemon/group_folder.h"
#include "worker/daemon/group_run.h"
#include "worker/daemon/node_address.h"
#include "worker/daemon/session.h"
#include "worker/file_cache/file_cache.h"
#include "worker/gpus/node_gpus.h"

namespace hooke {

constexpr absl::Duration kTimeoutMin =
    absl::Milliseconds(1);                               // collective_timeout and exchange_timeout are at least this.
constexpr absl::Duration kTimeoutMax = absl::Hours(24);  // collective_timeout and exchange_timeout are at most this.

struct WorkerOptions {
  std::string coordinator = "127.0.0.1:7411";
  std::string name;  // Unique in the cluster.
  std::string site = "default";
  uint32_t slots = 1;     // 1 to 4096.
  std::string state_dir;  // Absolute path of a folder that no other worker uses.
  std::string metrics;    // HOST:PORT where metrics are served over HTTP; empty: nowhere.
  std::string version;
  ClusterToken token;           // The cluster's token; may be empty.
  std::string only_job;         // Runs only groups of this job; empty: of any job.
  bool allow_commands = false;  // Whether jobs may run any program here, as the user of this worker.
  uint64_t files_cache_bytes = uint64_t{10} << 30;  // Files of jobs that are kept here; >= 1.
  // The cores to which ranks are bound. Empty: ranks are not bound.
  std::vector<Core> cores;
  // The cores are divided into so many equal shares, or into `slots` if that is more. Each slot has one share.
  uint32_t core_shares = 1;
  std::string cores_file = kCoresFile;  // NodeCoresOptions::file.
  // The GPUs that are divided among ranks. Empty: ranks see the GPUs that this process sees.
  std::vector<GpuName> gpus;
  std::string gpus_file = kGpusFile;  // NodeGpusOptions::file.
  // How groups are started. The caller sets only flavour, mpirun, rank_binary, remote_agent, threads_per_rank, as_root,
  // environment and ucx_devices.
  LaunchOptions launch;
  std::string mpi_version;  // MpiVersion of launch.mpirun; may be empty.
  // The address at which the site's other nodes reach this one. Without an address, this worker takes no part in groups
  // of several workers.
  NodeAddress node;
  absl::Duration collective_timeout = absl::Seconds(30);
  absl::Duration exchange_timeout = absl::Seconds(5);
  RankWatchOptions watch;
  absl::Duration leave_within = absl::ZeroDuration();  // GroupRunOptions::leave_within; up to kTimeoutMax.
  absl::Duration stop_grace = absl::Seconds(2);        // GroupRunOptions::stop_grace.
  absl::Duration stuck_after = absl::Seconds(10);      // GroupRunOptions::stuck_after.
  absl::Duration ready_again = absl::Seconds(30);      // GroupRunOptions::ready_again.
  absl::Duration flush_within =
      // How long the destructor waits for the coordinator to take the last events and the goodbye.
      absl::Seconds(2);
  // Called once by Start, with the HOST:PORT where metrics are served; not called if they are not. May be empty.
  std::function<void(const std::string&)> on_metrics;
  std::function<void()> on_welcome;        // Called once, from a thread of the daemon; may be empty.
  std::shared_ptr<spdlog::logger> logger;  // Not null.
};

// Checks that commands may be allowed with this coordinator. INVALID_ARGUMENT: other machines can reach the
// coordinator, and the cluster has no token. Anybody who reaches it could then run any program on its workers.
absl::Status CheckCommandsAllowed(absl::string_view coordinator, const ClusterToken& token);

// Checks what can be known of the options without a network. INVALID_ARGUMENT: an option is out of range. NOT_FOUND:
// hooke-rank or mpirun is missing.
absl::Status CheckWorkerOptions(const WorkerOptions& options);

class WorkerDaemon {
 public:
  // Starts a daemon. Errors as of CheckWorkerOptions, and UNAVAILABLE: metrics cannot be served where they
  // should. FAILED_PRECONDITION: the state folder cannot be used.
  static absl::StatusOr<std::unique_ptr<WorkerDaemon>> Start(WorkerOptions options);

  // Lets all groups leave, stops those that have not left in time, and starts no more. Returns at once.
  void LeaveAll();
  // Returns whether a group runs.
  bool AnyRuns();

  // Stops all groups with all their processes, and starts no more. DEADLINE_EXCEEDED: some groups have not ended within
  // `limit`; the message names them. The destructor would wait for these groups, perhaps for ever.
  absl::Status StopAll(absl::Duration limit);

  // Stops all groups and waits for their ends without a limit. Sends the ends to the coordinator, and says goodbye.
  ~WorkerDaemon();
  WorkerDaemon(const WorkerDaemon&) = delete;
  WorkerDaemon& operator=(const WorkerDaemon&) = delete;

  // Returns the time since the last group has ended, or since the start if there was none. 0 while a group runs.
  absl::Duration IdleFor();

  // Returns OK, or why the coordinator refuses this worker. A refused daemon does nothing more.
  absl::Status Refusal();

 private:
  WorkerDaemon(WorkerOptions options, std::unique_ptr<WorkerFolder> state_folder, std::unique_ptr<FileCache> files);

  void StartGroup(const v1::StartGroupCommand& start);
  void StopGroup(const v1::StopGroup& stop);
  void LaunchPart(const v1::LaunchPart& command);
  std::unique_ptr<GroupRun> MakeRun(v1::StartGroupCommand start);
  SessionOptions MakeSessionOptions() const;
  SessionCallbacks MakeSessionCallbacks();
  std::vector<v1::GroupId> RunningGroups();
  void NoteRefusal(const absl::Status& why);
  void CollectEndedRuns();
  absl::Status OpenMetrics();
  void CollectMetrics(MetricFamilies& families);

  struct Running {
    std::unique_ptr<GroupRun> run;
    uint32_t ranks = 0;  // How many ranks of the group run here.
    bool ended = false;
  };

  const WorkerOptions options_;
  const std::unique_ptr<WorkerFolder> state_folder_;
  const std::unique_ptr<FileCache> files_;
  const NodeCores cores_;
  NodeGpus gpus_;
  absl::Mutex mutex_;
  SteadyCondition changed_;                                      // Signalled when a run has left runs_.
  std::map<std::string, Running> runs_ ABSL_GUARDED_BY(mutex_);  // Keyed by GroupName.
  absl::Time idle_since_ ABSL_GUARDED_BY(mutex_);  // On SteadyTime's clock; has a meaning while runs_ is empty.
  bool any_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool shutdown_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Session> session_;    // Set before the first thread starts, reset after the last has ended.
  std::unique_ptr<FolderSpace> space_;  // Null if there are no metrics.
  // Null if there are no metrics. Its threads use session_, so it is destroyed before that.
  std::unique_ptr<HttpServer> metrics_;
  std::thread collector_;  // Destroys ended runs, because a run's own thread cannot.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_WORKER_DAEMON_H_
