#ifndef HOOKE_CLIENT_LOCAL_CLUSTER_LOCAL_CLUSTER_H_
#define HOOKE_CLIENT_LOCAL_CLUSTER_LOCAL_CLUSTER_H_

// A whole cluster on this machine: servers and workers as child processes on free ports, or on virtual hosts. Only one
// thread may use it. Only this machine can reach the cluster.
//
// A daemon writes its --ready-file when it is ready. A server's file has the HOST:PORT where it listens in its first
// line. A worker's file has any line. With metrics, each has a line "metrics HOST:PORT"; with a web page, that of the
// coordinator has a line "dashboard HOST:PORT".

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/local_cluster/cluster_folder.h"
#include "client/local_cluster/virtual_hosts.h"
#include "client/process/child_process.h"
#include "client/process/interrupts.h"

namespace hooke {

struct LocalClusterOptions {
  int servers = 2;  // The first one is also the coordinator.
  int workers = 2;  // Without `hosts`; with them each has one worker.
  // If set, the daemons run on these hosts: server 1 and worker 1 on the first one, and so on, in turn.
  std::optional<VirtualHostsOptions> hosts;
  int slots = 2;                                     // Slots of each worker.
  std::string command = "hooke up";                  // The command that owns the cluster.
  std::string state_dir;                             // Absolute path.
  std::string programs_dir;                          // The folder of hooke-server and hooke-worker.
  bool metrics = false;                              // Each daemon serves metrics, on a free port.
  bool dashboard = false;                            // The coordinator serves its web page.
  std::string dashboard_address;                     // HOST:PORT where it does; empty: a free port of its host.
  std::string token_file;                            // Absolute path, passed to all daemons; empty: no token.
  absl::Duration start_timeout = absl::Seconds(30);  // Most time for each daemon to become ready.
  absl::Duration stop_grace =
      // Time between SIGTERM and SIGKILL. The workers have it together, and then the servers.
      absl::Seconds(10);
};

// Paths that a daemon gets as flags. No two daemons share `ready_file` or `state_dir`.
struct DaemonPaths {
  std::string program;
  std::string state_dir;
  std::string ready_file;
};
std::vector<std::string> ServerArguments(const DaemonPaths& paths, const std::string& listen,
                                         const std::string& coordinator);
std::vector<std::string> WorkerArguments(const DaemonPaths& paths, const std::string& name, int slots,
                                         const std::string& coordinator);

class LocalCluster {
 public:
  // Starts a cluster. Returns when every daemon is ready and other commands find the cluster in state_dir. After an
  // error nothing is left running. ALREADY_EXISTS: another `up` owns the folder. FAILED_PRECONDITION: a port of the
  // previous run is in use. CANCELLED: an interrupt came. Other errors: a program is missing, or a daemon ends or is
  // not ready in time.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(const LocalClusterOptions& options,
                                                             Interrupts* interrupts);

  // Stops all running daemons.
  ~LocalCluster();

  const std::string& coordinator() const { return servers_.front().address; }
  std::vector<std::string> server_addresses() const;
  const std::string& state_dir() const { return options_.state_dir; }
  int workers() const { return hosts_ != nullptr ? hosts_->count() : options_.workers; }
  // The virtual hosts; null if there are none.
  const VirtualHosts* hosts() const { return hosts_.get(); }
  // Whether the workers run commands. A worker refuses that if its coordinator does not listen on loopback and there is
  // no token.
  bool allows_commands() const { return hosts_ == nullptr || !options_.token_file.empty(); }

  // HOST:PORT of the coordinator's web page; empty without one.
  const std::string& dashboard() const { return servers_.front().dashboard; }
  // The daemons' names and the HOST:PORT of their metrics; empty without metrics.
  std::vector<std::pair<std::string, std::string>> metrics_addresses() const;
  // A file that tells Prometheus of these addresses, in the format of its file_sd_configs. It exists only with metrics.
  std::string metrics_targets() const;

  // Messages for people about daemons that have ended. Each message is returned once.
  std::vector<std::string> NewlyEnded();
  // Whether the coordinator still runs. Without it the cluster is useless.
  bool coordinator_runs() { return !servers_.front().child.Ended().has_value(); }

  // Sends SIGTERM to the workers, then to the servers, so that the last snapshots hold everything. Daemons that still
  // run after `stop_grace`, or at an interrupt, get SIGKILL. Returns the names of the daemons that got SIGKILL.
  std::vector<std::string> Stop(Interrupts* interrupts);

 private:
  struct Daemon {
    std::string name;
    std::string address;    // Servers only.
    std::string metrics;    // HOST:PORT; empty without metrics.
    std::string dashboard;  // HOST:PORT; empty without a web page.
    std::string log_path;
    std::string ready_file;
    Child child;
    bool told = false;  // Whether NewlyEnded has reported its end.
  };

  LocalCluster(LocalClusterOptions options, ClusterFolder folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}

  absl::Status StartAll(Interrupts* interrupts);
  // Returns the address at which the daemons of host `place` serve pages. Without virtual hosts it is 127.0.0.1.
  std::string PageHost(int place) const;
  // The path of the file that keeps a server's address for the next run.
  std::string RememberedAddress(int index) const;
  absl::Status StartServer(int index, const std::string& listen, Interrupts* interrupts);
  absl::Status StartWorker(int index);
  // With virtual hosts, the daemon runs on host `place` modulo their number.
  absl::StatusOr<Daemon> StartDaemon(const std::string& name, std::vector<std::string> arguments,
                                     const DaemonPaths& paths, int place);
  // Returns the first line of the ready file, and sets the daemon's `metrics` and `dashboard`.
  absl::StatusOr<std::string> WaitUntilReady(Daemon& daemon, Interrupts* interrupts) const;
  absl::Status WriteMetricsTargets() const;
  DaemonPaths PathsOf(const std::string& program, const std::string& name) const;
  // Stops these daemons. An interrupt sets `hurry`. These daemons, and those of later calls, are then killed at once.
  void StopDaemons(std::vector<Daemon>& daemons, Interrupts* interrupts, bool& hurry, std::vector<std::string>& killed);

  const LocalClusterOptions options_;
  ClusterFolder folder_;
  std::unique_ptr<VirtualHosts> hosts_;  // Before the daemons, which end before their hosts.
  std::vector<Daemon> servers_;
  std::vector<Daemon> workers_;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_LOCAL_CLUSTER_LOCAL_CLUSTER_H_
