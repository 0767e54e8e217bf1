#ifndef HOOKE_SERVER_PARAMETERS_PARAMETER_SERVER_H_
#define HOOKE_SERVER_PARAMETERS_PARAMETER_SERVER_H_

// This server's shards of all jobs' centers, served over gRPC and kept on disk. The main header of the folder.
//
//   auto storage = OpenFolderStorage(state_folder + "/centers");                 // server/parameters/storage.h
//   auto parameters = ParameterServer::Create({.storage = ..., .logger = ...});  // Finds the snapshots there.
//   builder.RegisterService((*parameters)->service());
//   ...                                // Start gRPC.
//   (*parameters)->LoadInBackground();
//   ...                                // Seal() jobs that have ended; put Stats() into the heartbeat.
//   (*parameters)->Stop();             // First: ends open streams and writes the last snapshots.
//   grpc_server->Shutdown(deadline);   // Then. Destroy the ParameterServer only after this.
//
// Call LoadInBackground and Stop from one thread; the other methods are thread-safe. Several ParameterServers can live
// in one process without knowing of each other.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clocks/clock_offset.h"
#include "server/parameters/group_reached.h"
#include "server/parameters/parameter_figures.h"
#include "server/parameters/wait_clock.h"

namespace grpc {
class Service;
}
namespace spdlog {
class logger;
}

namespace hooke {

class Storage;

struct ParameterServerOptions {
  std::shared_ptr<Storage> storage;  // Holds the snapshots. Nothing else may write to it.
  std::shared_ptr<spdlog::logger> logger;
  uint64_t max_center_bytes = uint64_t{8} << 30;         // Memory of all shards together.
  absl::Duration snapshot_interval = absl::Seconds(10);  // How often changed shards are written; > 0.
  absl::Duration initialize_lease =
      // If a group pauses this long while it sends initial values, the right to initialize the center passes on; > 0.
      absl::Seconds(20);
  // The clock for the snapshot interval, leases, measured speeds and waits for other groups.
  std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>();
  std::string server_id;  // The server's identity. The answer to Identify has it and `instance`.
  std::string instance;
  // Address or name of this host where exchanges without gRPC are accepted, on a free port. "": nowhere.
  std::string direct_host;
};

struct ParameterServerStats {
  uint64_t center_bytes = 0;      // Memory reserved for the shards.
  std::vector<std::string> jobs;  // Jobs whose shards are in memory or will be loaded, sorted.
  uint32_t disk_centers = 0;      // Jobs whose center is on disk only.
  uint64_t disk_bytes = 0;        // Size of the snapshots and kept states of all jobs.
  // Jobs whose center is on disk only or damaged, sorted, and the bytes that each takes there.
  std::vector<std::pair<std::string, uint64_t>> disk_jobs;
};

// Paths of the methods that ranks call, such as "/hooke.v1.ParameterServer/Attach". Each of them but Locate asks for
// the key of the caller's job, or checks that the caller's credential is for that job. Locate tells all callers where
// this server accepts exchanges; the rest of its answer needs the key.
std::set<std::string> MethodsForRanks();

class ParameterServer {
 public:
  // Finds every job in storage, and starts the thread that writes new snapshots. It reads no values, so it is quick
  // however many and large the centers are. A job's newest readable snapshot is loaded when a call needs it, or by
  // LoadInBackground. Unreadable snapshots are logged. If no snapshot of a job is readable, all its calls get
  // DATA_LOSS. If there is no room for a job's shard, its calls get UNAVAILABLE until the next start. INVALID_ARGUMENT:
  // an option is missing or out of range. UNAVAILABLE: the process can have no more threads. Other errors are those of
  // the storage.
  static absl::StatusOr<std::unique_ptr<ParameterServer>> Create(const ParameterServerOptions& options);

  // Calls Stop().
  virtual ~ParameterServer() = default;

  // Returns the gRPC service hooke.v1.ParameterServer. Register it in one grpc::ServerBuilder. This object owns it and
  // must outlive the grpc::Server.
  virtual grpc::Service* service() = 0;

  // Loads all shards of running jobs that no call has needed yet, then reads the snapshots of ended ones to see whether
  // they are intact. Returns at once; Stop ends the work. Call it once, when the server listens.
  virtual void LoadInBackground() = 0;

  // Writes the job's last snapshot and frees its memory. Call it when the job has ended. Pull still serves the center,
  // from the snapshot; Attach and Exchange are refused with FAILED_PRECONDITION. Also OK for a job that is already
  // sealed or not held here. After an error nothing is freed: call again.
  virtual absl::Status Seal(absl::string_view job_id) = 0;

  // Frees the job's shard for good, in memory and on disk. Call it only if the coordinator has ordered it. OK if the
  // job is not held here. FAILED_PRECONDITION: the shard here is of another job with that id, whose key is not
  // `job_key`, or all its snapshots are damaged; it stays. UNAVAILABLE: call again.
  virtual absl::Status Forget(const std::string& job_id, const std::string& job_key) = 0;

  // Ends the present generation of the job: the number of its groups changes, and all of them are gone, or cut off.
  // From the return on, nothing of starts below `successor` reaches the center, and they get ABORTED. Returns how far
  // each group had come here, by its index; that is on disk, and changes no more. Empty: this server has no say,
  // because it has no block of the center, or lost it. The next generation begins when one of its groups attaches.
  // Idempotent. PERMISSION_DENIED: the shard here is of another job with that id. ABORTED: it is in a later generation
  // already. Other errors are those of the disk: call again.
  virtual absl::StatusOr<std::vector<GroupReached>> EndGeneration(const std::string& job_id, const std::string& job_key,
                                                                  uint32_t successor) = 0;

  // Takes a heartbeat's round trip, by SteadyTime of this machine. From the last ones ReadExchanges tells how this
  // machine's clock relates to the coordinator's.
  virtual void MeasureClock(const ClockRoundTrip& trip) = 0;

  virtual ParameterServerStats Stats() const = 0;

  // Returns more figures, for people. Takes no lock for longer than a copy, and touches no disk.
  virtual ParameterFigures Figures() const = 0;

  // Refuses new calls with UNAVAILABLE and ends the open ones, whose clients see UNAVAILABLE or CANCELLED. Waits at
  // most five seconds for them. Then writes the last snapshot of each changed shard, and returns the first error of
  // that. Call it before grpc::Server::Shutdown. A second call does nothing and returns OK.
  virtual absl::Status Stop() = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_PARAMETER_SERVER_H_
