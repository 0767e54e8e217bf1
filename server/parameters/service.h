#ifndef HOOKE_SERVER_PARAMETERS_SERVICE_H_
#define HOOKE_SERVER_PARAMETERS_SERVICE_H_

// hooke.v1.ParameterServer over gRPC: each handler checks its message, calls the store, replies. Used by
// ParameterServer.

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/parameter_server.grpc.pb.h"
#include "server/parameters/open_calls.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/rank_seats.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

class ParameterService final : public v1::ParameterServer::Service {
 public:
  struct Options {
    ParameterStore* store = nullptr;  // Outlives the service.
    std::shared_ptr<spdlog::logger> logger;
    std::shared_ptr<WaitClock> clock;
    absl::Time started;         // By the machine's clock: Restored.loaded_unix_us.
    v1::LocateResponse direct;  // Where exchanges without gRPC are taken.
  };
  explicit ParameterService(Options options);

  // See OpenCalls::Close.
  bool Close(absl::Duration timeout);

  grpc::Status Attach(grpc::ServerContext* context, const v1::AttachRequest* request,
                      v1::AttachResponse* response) override;
  grpc::Status Locate(grpc::ServerContext* context, const v1::LocateRequest* request,
                      v1::LocateResponse* response) override;
  grpc::Status Pace(grpc::ServerContext* context, const v1::PaceRequest* request, v1::PaceResponse* response) override;
  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullResponse>* writer) override;
  grpc::Status Save(grpc::ServerContext* context, const v1::SaveRequest* request, v1::SaveResponse* response) override;

 private:
  // Initialize and Exchange, whose messages stay as gRPC received them. Each stream has a thread of its own, which may
  // wait for other groups; of Exchange a rank has one at a time, and a few that it had before.
  grpc::Status RunInitialize(grpc::ServerContext* context, grpc::ServerReader<grpc::ByteBuffer>* reader);
  grpc::Status RunExchange(grpc::ServerContext* context,
                           grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>* stream);

  // The status as gRPC has it; refusals are logged with who called.
  grpc::Status Reply(const grpc::ServerContext& context, absl::string_view call, const absl::Status& status) const;

  const Options options_;
  OpenCalls calls_;
  std::atomic<uint64_t> exchanges_{0};  // So many streams of Exchange have come.
  RankSeats seats_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SERVICE_H_
