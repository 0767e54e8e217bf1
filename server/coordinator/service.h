#ifndef HOOKE_SERVER_COORDINATOR_SERVICE_H_
#define HOOKE_SERVER_COORDINATOR_SERVICE_H_

// The Coordinator over gRPC, and the thread that ticks it. Used by server/daemon.h and by tests.
//
//   auto service = CoordinatorService::Create({.coordinator = ...});
//   builder.RegisterService(service->service());
//   ...
//   service->Stop();                   // First: open streams end with UNAVAILABLE.
//   grpc_server->Shutdown(deadline);   // Then; and only then destroy the service.

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/instant.h"

namespace grpc {
class Service;
}

namespace hooke {

struct CoordinatorServiceOptions {
  std::shared_ptr<Coordinator> coordinator;
  std::function<Instant()> clock = InstantNow;  // Called from any thread.
  absl::Duration tick = absl::Milliseconds(100);
  // A log that is followed and has nothing new answers with an empty chunk as often, so that its reader can tell a job
  // that is silent from a coordinator that is gone.
  absl::Duration log_sign_of_life = absl::Seconds(20);
};

class CoordinatorService {
 public:
  // Starts ticking.
  static std::unique_ptr<CoordinatorService> Create(CoordinatorServiceOptions options);

  // Calls Stop().
  virtual ~CoordinatorService() = default;

  // hooke.v1.Coordinator, owned by this object, which outlives the grpc::Server.
  virtual grpc::Service* service() = 0;

  virtual Coordinator& coordinator() = 0;

  // Stops ticking and the coordinator. A second call does nothing.
  virtual void Stop() = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_SERVICE_H_
