#ifndef HOOKE_SERVER_COORDINATOR_HEARTBEAT_H_
#define HOOKE_SERVER_COORDINATOR_HEARTBEAT_H_

// The heartbeats of a server. Once a second the server tells the coordinator that it lives and which jobs it holds. The
// coordinator answers which of these jobs have ended. The server then seals their centers (ParameterServer::Seal). The
// coordinator also answers which of the jobs were forgotten. The server then frees their centers
// (ParameterServer::Forget). It frees a center for no other reason. If the coordinator places nothing on this server,
// the answer says why, and the server logs the reason. If the coordinator refuses the server's token, the server logs
// that once.

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace grpc {
class Channel;
}
namespace spdlog {
class logger;
}

namespace hooke {

class ParameterServer;

struct HeartbeatOptions {
  std::string address;  // The HOST:PORT at which ranks dial this server.
  std::string server_id;
  std::string instance;  // Names this process of the server.
  std::string version;
  std::string coordinator;                 // HOST:PORT, for messages to users only.
  std::shared_ptr<grpc::Channel> channel;  // Leads to the coordinator.
  ParameterServer* parameters = nullptr;   // Outlives this.
  std::shared_ptr<spdlog::logger> logger;
  absl::Duration interval = absl::Seconds(1);
  absl::Duration call_timeout = absl::Seconds(2);
  absl::Duration complain_every = absl::Seconds(10);   // Pause between complaints while the coordinator is away.
  absl::Duration seal_again_after = absl::Minutes(1);  // Pause after a Seal or Forget that failed, for its job.
  // The list of jobs on disk is sent when it has changed. If not, it is sent again after this many heartbeats.
  int disk_jobs_every = 60;
};

// Sends heartbeats from its construction to its destruction, whether or not the coordinator answers. The destructor
// waits at most `call_timeout`, and for a Seal or Forget that is running.
class Heartbeat {
 public:
  static std::unique_ptr<Heartbeat> Start(HeartbeatOptions options);
  virtual ~Heartbeat() = default;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_HEARTBEAT_H_
