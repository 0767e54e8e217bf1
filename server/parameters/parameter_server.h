#ifndef HOOKE_SERVER_PARAMETERS_PARAMETER_SERVER_H_
#define HOOKE_SERVER_PARAMETERS_PARAMETER_SERVER_H_

// Who holds parameters: this server's shards of all jobs' centers, served over gRPC and kept on disk. The folder's main
// header; used by server/main.cc and by tests.
//
//   auto storage = OpenFolderStorage(state_folder + "/centers");              // server/parameters/storage.h
//   auto parameters = ParameterServer::Create({.storage = ..., .logger = ...});  // Loads the snapshots found there.
//   builder.RegisterService((*parameters)->service());
//   ...                                                                        // Seal() jobs that ended, Stats() into
//   the heartbeat.
//   (*parameters)->Stop();                                                     // First: open streams end, the last
//   snapshot is written. grpc_server->Shutdown(deadline);                                           // Then; and only
//   then destroy the ParameterServer.
//
// All methods are thread-safe. Several ParameterServers live in one process without knowing of each other.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
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
  std::shared_ptr<Storage> storage;  // Where the snapshots lie; nobody else writes there.
  std::shared_ptr<spdlog::logger> logger;
  uint64_t max_center_bytes = uint64_t{8} << 30;         // Memory of all shards together.
  absl::Duration snapshot_interval = absl::Seconds(10);  // Changed shards are written so often; > 0.
  absl::Duration initialize_lease =
      absl::Seconds(20);  // After a pause so long the right to initialize a center passes on; > 0.
  // What leases, speeds and waits for other groups go by.
  std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>();
  // Where to listen, on a free port, for exchanges without gRPC: an address or a name of this host. "": nowhere.
  std::string direct_host;
};

struct ParameterServerStats {
  uint64_t center_bytes = 0;      // Memory reserved for the shards.
  std::vector<std::string> jobs;  // Whose shards are in memory, sorted.
  uint32_t disk_centers = 0;      // Jobs whose center is on disk only.
  uint64_t disk_bytes = 0;        // Snapshots of all jobs.
};

class ParameterServer {
 public:
  // Loads every snapshot in storage and starts the thread that writes new ones. An unreadable newest snapshot is logged
  // and the one before is used; a job without any readable one answers DATA_LOSS to everybody, and the server starts
  // all the same. INVALID_ARGUMENT: an option is missing or out of range. RESOURCE_EXHAUSTED: the stored shards are
  // larger than max_center_bytes.
  static absl::StatusOr<std::unique_ptr<ParameterServer>> Create(ParameterServerOptions options);

  // Calls Stop().
  virtual ~ParameterServer() = default;

  // hooke.v1.ParameterServer, to be registered in one grpc::ServerBuilder. Owned by this object, which outlives the
  // grpc::Server.
  virtual grpc::Service* service() = 0;

  // The job has ended: writes its last snapshot and frees its memory. Pull goes on to serve it, from the snapshot;
  // Attach and Exchange are refused with FAILED_PRECONDITION. OK, too, for a job that is sealed already or not held
  // here. On an error (the disk) nothing is freed: call again.
  virtual absl::Status Seal(absl::string_view job_id) = 0;

  virtual ParameterServerStats Stats() const = 0;

  // Refuses new calls with UNAVAILABLE, ends the open ones (their clients see UNAVAILABLE or CANCELLED), waits for them
  // for at most five seconds, and writes the last snapshot of each changed shard. Returns the first error of the
  // latter. Call before grpc::Server::Shutdown. A second call does nothing and returns OK.
  virtual absl::Status Stop() = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_PARAMETER_SERVER_H_
