#ifndef HOOKE_CLIENT_LOCAL_CLUSTER_LOCAL_CLUSTER_H_
#define HOOKE_CLIENT_LOCAL_CLUSTER_LOCAL_CLUSTER_H_

// A whole cluster on this machine: servers and workers as child processes on free ports. Used by `hooke up`. One
// thread.
//
// A daemon that is ready writes its --ready-file: a server the HOST:PORT that it listens at, and a line end; of a
// worker's any line counts.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/local_cluster/cluster_folder.h"
#include "client/process/child_process.h"
#include "client/process/interrupts.h"

namespace hooke {

struct LocalClusterOptions {
  int servers = 2;  // The first is the coordinator, too.
  int workers = 2;
  int slots = 2;                                     // Of each worker.
  std::string state_dir;                             // Absolute.
  std::string programs_dir;                          // Where hooke-server and hooke-worker are.
  absl::Duration start_timeout = absl::Seconds(30);  // For each daemon.
  absl::Duration stop_grace =
      absl::Seconds(10);  // Between SIGTERM and SIGKILL; once for the workers, once for the servers.
};

// What a daemon's start is told; `ready_file` and `state_dir` are its own.
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
  // Returns when every daemon is ready and other commands find the cluster in state_dir. On an error (a program is
  // missing, a daemon ends or is not ready in time, another `up` owns the folder: ALREADY_EXISTS; a
  // port of the run before is in use: FAILED_PRECONDITION; an interrupt:
  // CANCELLED) nothing is left running.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(const LocalClusterOptions& options,
                                                             Interrupts* interrupts);

  // Stops what runs.
  ~LocalCluster();

  const std::string& coordinator() const { return servers_.front().address; }
  std::vector<std::string> server_addresses() const;

  // What a person should read about daemons that ended since the last call; each is told once.
  std::vector<std::string> NewlyEnded();
  // Without it the cluster is no cluster.
  bool coordinator_runs() { return !servers_.front().child.Ended().has_value(); }

  // SIGTERM to the workers, then to the servers, so that the last snapshots hold everything; SIGKILL after the grace,
  // or at an interrupt. Returns the names of those that had to be killed.
  std::vector<std::string> Stop(Interrupts* interrupts);

 private:
  struct Daemon {
    std::string name;
    std::string address;  // Servers.
    std::string log_path;
    std::string ready_file;
    Child child;
    bool told = false;  // That it ended.
  };

  LocalCluster(LocalClusterOptions options, ClusterFolder folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}

  absl::Status StartAll(Interrupts* interrupts);
  std::string RememberedAddress(int index) const;  // The file that keeps it for the next run.
  absl::Status StartServer(int index, const std::string& listen, Interrupts* interrupts);
  absl::StatusOr<Daemon> StartDaemon(const std::string& name, std::vector<std::string> arguments,
                                     const DaemonPaths& paths);
  absl::StatusOr<std::string> WaitUntilReady(Daemon& daemon, Interrupts* interrupts) const;
  DaemonPaths PathsOf(const std::string& program, const std::string& name) const;
  // What was interrupted once kills at once, also whatever is stopped after it.
  void StopDaemons(std::vector<Daemon>& daemons, Interrupts* interrupts, bool& hurry, std::vector<std::string>& killed);

  const LocalClusterOptions options_;
  ClusterFolder folder_;
  std::vector<Daemon> servers_;
  std::vector<Daemon> workers_;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_LOCAL_CLUSTER_LOCAL_CLUSTER_H_
