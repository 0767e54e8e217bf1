#ifndef HOOKE_SERVER_COORDINATOR_SERVICE_H_
#define HOOKE_SERVER_COORDINATOR_SERVICE_H_

// The gRPC service of the Coordinator, and the thread that ticks it and starts the dials of servers.
//
//   auto service = CoordinatorService::Create({.coordinator = ...});
//   service->AddTo(builder);
//   grpc_server = builder.BuildAndStart();
//   service->Serve();                  // Takes workers' sessions.
//   ...
//   service->Stop();                   // Ends workers' sessions, and open streams of users with UNAVAILABLE.
//   grpc_server->Shutdown(deadline);
//   service->Join();
//   grpc_server.reset();               // After this the service may be destroyed.

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/dial_back.h"
#include "server/coordinator/instant.h"
#include "server/job_files/file_store.h"

namespace grpc {
class ServerBuilder;
}

namespace hooke {

struct CoordinatorServiceOptions {
  std::shared_ptr<Coordinator> coordinator;
  std::function<Instant()> clock = InstantNow;  // Called from any thread.
  absl::Duration tick = absl::Milliseconds(100);
  std::shared_ptr<DialBack> dial_back = MakeGrpcDialBack();  // Stop stops it.
  // How often the reader of a followed log gets an empty chunk while there is nothing new. From that chunk the reader
  // knows that the job prints nothing, and that the coordinator is still there.
  absl::Duration log_sign_of_life = absl::Seconds(20);
  std::shared_ptr<FileStore> files;                    // Null: jobs with files are refused.
  absl::Duration upload_still_max = absl::Minutes(1);  // An upload of files without a chunk for so long is ended.
};

class CoordinatorService {
 public:
  // Starts ticking.
  static std::unique_ptr<CoordinatorService> Create(CoordinatorServiceOptions options);

  // Calls Stop().
  virtual ~CoordinatorService() = default;

  // Registers the service hooke.v1.Coordinator, once. This object owns it, and must outlive the grpc::Server.
  virtual void AddTo(grpc::ServerBuilder& builder) = 0;
  // Begins to take workers' sessions. Must be called once, after the server has started.
  virtual void Serve() = 0;
  // Waits for the end of workers' sessions. After Serve it must be called when the server is shut down, and before it
  // is destroyed.
  virtual void Join() = 0;

  virtual Coordinator& coordinator() = 0;

  // Stops ticking and the coordinator. A second call does nothing.
  virtual void Stop() = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_SERVICE_H_
