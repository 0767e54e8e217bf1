#ifndef HOOKE_TESTS_END_TO_END_CLUSTER_H_
#define HOOKE_TESTS_END_TO_END_CLUSTER_H_

// A real cluster for a test: hooke-server and hooke-worker processes on free loopback ports with their own folder, and
// the `hooke` command. Destroying the Cluster ends its processes and removes its folder, even after a failure. Callers
// of Start report its error as a gtest failure. Use it from one thread.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordinator.grpc.pb.h"
#include "worker/launch/process.h"

namespace hooke {

struct ClusterOptions {
  int servers = 2;
  int workers = 2;
  int slots = 2;  // Slots of each worker.
  std::vector<std::string> server_flags;
  std::vector<std::string> worker_flags;
  std::string host = "127.0.0.1";  // The host where the servers listen and are dialed.
  std::string token;               // The cluster's token; empty: none. All programs get a file with it.
};

struct ProgramResult {
  int status = -1;  // Exit status; 128 + n if signal n ended the program.
  std::string output;
};

// A condition on a job's status, for Cluster::Await.
using JobCondition = std::function<bool(const v1::JobStatus&)>;

class Cluster {
 public:
  // Starts everything and waits until the coordinator knows all workers and servers.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(const ClusterOptions& options);
  ~Cluster();

  const std::string& folder() const { return folder_; }
  // Returns host:port of server `index`; server 0 is the coordinator.
  const std::string& server_address(int index) const { return servers_[index].address; }
  std::string server_folder(int index) const;

  // Starts another worker, and waits until it is ready.
  absl::Status AddWorker(int slots, const std::vector<std::string>& flags = {});
  // Sends a signal to a daemon.
  void SignalServer(int index, int signal);
  void SignalWorker(int index, int signal);
  // Waits until a server that was sent SIGKILL or SIGTERM has ended.
  absl::Status AwaitServerEnd(int index);
  // Waits like AwaitServerEnd, then starts the server again with the same address and folder.
  absl::Status RestartServer(int index);
  // Returns the lines that a server or a worker has printed so far.
  std::string ServerOutput(int index) const;
  std::string WorkerOutput(int index) const;

  // Writes a file that only we can read, in the cluster's folder, and returns its path.
  std::string WritePrivateFile(const std::string& name, const std::string& text) const;
  // Runs `hooke ARGUMENTS` against this cluster.
  ProgramResult Hooke(std::vector<std::string> arguments, absl::Duration limit = absl::Seconds(60)) const;
  // Starts `hooke ARGUMENTS` in the background. `on_line` is called with each line of its output.
  absl::StatusOr<std::unique_ptr<Process>> StartHooke(std::vector<std::string> arguments,
                                                      std::function<void(absl::string_view)> on_line) const;
  // Writes the job file, submits it, and returns the job's id.
  absl::StatusOr<std::string> Submit(const std::string& yaml) const;

  absl::StatusOr<v1::JobStatus> Status(const std::string& job_id) const;
  // Watches the job until the condition holds or the job ends, and returns its status. After `limit`:
  // DEADLINE_EXCEEDED, with the last status in the message.
  absl::StatusOr<v1::JobStatus> Await(const std::string& job_id, absl::Duration limit,
                                      const JobCondition& condition) const;
  absl::StatusOr<v1::JobStatus> AwaitEnd(const std::string& job_id, absl::Duration limit) const;
  // Returns the job's whole log.
  std::string Log(const std::string& job_id) const;

  // Returns the process ids of a group's ranks on this machine, in no particular order; empty if none runs.
  std::vector<pid_t> RankPids(const std::string& job_id, uint32_t group) const;
  // Returns all command lines of processes that contain this cluster's folder.
  std::vector<std::string> CommandLinesOfCluster() const;
  // Returns the processes other than the daemons that have this cluster's folder in their command line.
  std::vector<pid_t> LeftOver() const;

 private:
  struct Daemon;

  Cluster() = default;
  absl::Status Add(std::vector<Daemon>& daemons, const std::string& name, std::vector<std::string> argv,
                   const std::vector<std::string>& flags);
  absl::Status Launch(Daemon& daemon);
  absl::Status StartDaemons(const ClusterOptions& options);
  absl::Status AwaitNodes(size_t nodes) const;

  struct Output;
  struct Daemon {
    std::string name;
    std::vector<std::string> argv;
    std::string ready_file;
    std::string address;  // Read from the server's ready file.
    std::shared_ptr<Output> output;
    std::unique_ptr<Process> process;
  };

  std::string folder_;
  std::string token_file_;  // Empty: no token.
  std::string programs_;
  std::vector<Daemon> servers_;
  std::vector<Daemon> workers_;
  std::unique_ptr<v1::Coordinator::Stub> coordinator_;
};

// Returns whether the job's state is SUCCEEDED, FAILED or CANCELLED.
bool Ended(const v1::JobStatus& job);

// Writes data that a small network learns in seconds, as the IDX pair of `prefix`. There are `samples` images of 28x28
// pixels, in ten classes. Each image has noise and a bright bar, whose place depends on its class.
// Noise adds up to 99 to each pixel, so bars of a brightness below that are hard to see.
absl::Status WriteBars(const std::string& prefix, int samples, uint64_t seed, int brightness = 120);

}  // namespace hooke

#endif  // HOOKE_TESTS_END_TO_END_CLUSTER_H_
