#ifndef HOOKE_WORKER_DAEMON_RANK_EVENTS_SERVER_H_
#define HOOKE_WORKER_DAEMON_RANK_EVENTS_SERVER_H_

// The gRPC service RankEvents on a unix socket, where the ranks of one group report. It checks the messages and passes
// them on. Each running group has one.

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

// The callbacks run on the server's threads. Only one thread at a time calls them for a rank. All are set.
struct RankEventCallbacks {
  // Called with the first report of a process. An error refuses the process, and then nothing more comes from it.
  std::function<absl::Status(const v1::RankHello& hello)> hello;
  // Called with each event of a rank other than hello. The event's oneof is set.
  std::function<void(uint32_t rank, const v1::RankEvent& event)> event;
  // Called when the rank's stream has ended, with or without an error. This is the last call for the rank.
  std::function<void(uint32_t rank)> stream_ended;
  // Called when mpirun wants its daemon to be started on another node.
  std::function<absl::Status(const v1::StartRemoteRequest& request)> start_remote;
};

class RankEventsServer {
 public:
  // Listens on `socket` (absolute path). UNAVAILABLE if the socket cannot be bound.
  static absl::StatusOr<std::unique_ptr<RankEventsServer>> Start(const std::string& socket,
                                                                 RankEventCallbacks callbacks);
  // Tells all ranks, those too that say hello later, that the group is to leave (RankCommand.leave). `why` is not
  // empty. Later calls change nothing. Any thread may call it.
  void Leave(const std::string& why);
  // Ends all streams. The last callback has returned when it returns.
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
