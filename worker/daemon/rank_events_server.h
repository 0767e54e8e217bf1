#ifndef HOOKE_WORKER_DAEMON_RANK_EVENTS_SERVER_H_
#define HOOKE_WORKER_DAEMON_RANK_EVENTS_SERVER_H_

// Where the ranks of one group report: the gRPC service RankEvents on a unix socket. Checks what comes and passes it
// on. There is one for each running group.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/worker.pb.h"

namespace grpc {
class Server;
}  // namespace grpc

namespace hooke {

// Called on the server's threads, for one rank by one thread at a time. All are set.
struct RankEventCallbacks {
  // A process reports for the first time. An error refuses it; then nothing more comes from it.
  std::function<absl::Status(const v1::RankHello& hello)> hello;
  // An event other than hello; its oneof is set.
  std::function<void(uint32_t rank, const v1::RankEvent& event)> event;
  // The stream ended, in peace or not. The last call for a rank.
  std::function<void(uint32_t rank)> stream_ended;
};

class RankEventsServer {
 public:
  // Listens on `socket` (absolute path). UNAVAILABLE when it cannot be bound.
  static absl::StatusOr<std::unique_ptr<RankEventsServer>> Start(const std::string& socket,
                                                                 RankEventCallbacks callbacks);
  // Ends all streams; the last callback has returned then.
  ~RankEventsServer();
  RankEventsServer(const RankEventsServer&) = delete;
  RankEventsServer& operator=(const RankEventsServer&) = delete;

 private:
  class Service;

  explicit RankEventsServer(RankEventCallbacks callbacks);

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;  // Destroyed before the service.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_RANK_EVENTS_SERVER_H_
