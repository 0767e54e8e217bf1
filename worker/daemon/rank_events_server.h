#ifndef HOOKE_WORKER_DAEMON_RANK_EVENTS_SERVER_H_
#define HOOKE_WORKER_DAEMON_RANK_EVENTS_SERVER_H_

// Where the ranks of one group report: the gRPC service RankEvents on a unix socket. Checks what comes and passes it
// on. Used by group_run.h; one for each running group.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/worker.pb.h"

namespace hooke {

// Who wants the reports. Called on the server's threads, for one rank by one thread at a time.
class RankEventSink {
 public:
  virtual ~RankEventSink() = default;

  // A process reports for the first time. An error refuses it; then nothing more comes from it.
  virtual absl::Status RankHello(const v1::RankHello& hello) = 0;
  // An event other than hello; its oneof is set.
  virtual void RankEvent(uint32_t rank, const v1::RankEvent& event) = 0;
  // The stream ended, in peace or not. The last call for a rank.
  virtual void RankStreamEnded(uint32_t rank) = 0;
};

class RankEventsServer {
 public:
  virtual ~RankEventsServer() = default;

  // Listens on `socket` (absolute path). The sink outlives the server. The destructor ends all streams and returns
  // after the last call to the sink. UNAVAILABLE when the socket cannot be bound.
  static absl::StatusOr<std::unique_ptr<RankEventsServer>> Start(const std::string& socket, RankEventSink& sink);
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_RANK_EVENTS_SERVER_H_
