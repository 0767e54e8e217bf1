#ifndef HOOKE_SERVER_COORDINATOR_HEARTBEAT_H_
#define HOOKE_SERVER_COORDINATOR_HEARTBEAT_H_

// A server's side of its membership: tells the coordinator once a second that this server lives and what it holds, and
// seals the centers of the jobs that the coordinator says have ended. Used by server/daemon.h.

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
  std::string address;  // Of this server, as ranks dial it: HOST:PORT.
  std::string version;
  std::string coordinator;                 // HOST:PORT, for messages.
  std::shared_ptr<grpc::Channel> channel;  // To it.
  ParameterServer* parameters = nullptr;   // Outlives this.
  std::shared_ptr<spdlog::logger> logger;
  absl::Duration interval = absl::Seconds(1);
  absl::Duration call_timeout = absl::Seconds(2);
  absl::Duration complain_every = absl::Seconds(10);   // While the coordinator does not answer.
  absl::Duration seal_again_after = absl::Minutes(1);  // Of a job whose center could not be written.
};

// Beats from its construction on, whether or not the coordinator answers, until it is destroyed, which waits at most
// `call_timeout` and for the end of a Seal.
class Heartbeat {
 public:
  static std::unique_ptr<Heartbeat> Start(HeartbeatOptions options);
  virtual ~Heartbeat() = default;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_HEARTBEAT_H_
