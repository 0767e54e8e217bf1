#ifndef HOOKE_SERVER_PARAMETERS_SERVICE_H_
#define HOOKE_SERVER_PARAMETERS_SERVICE_H_

// The gRPC service hooke.v1.ParameterServer. Each handler checks its message, calls the store and replies.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clocks/clock_offset.h"
#include "proto/parameter_server.grpc.pb.h"
#include "server/parameters/grpc_exchanges.h"
#include "server/parameters/open_calls.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

class ParameterService final : public v1::ParameterServer::Service {
 public:
  struct Options {
    ParameterStore* store = nullptr;     // Outlives the service, as `exchanges` does.
    GrpcExchanges* exchanges = nullptr;  // Serves the streams of Exchange.
    std::shared_ptr<spdlog::logger> logger;
    std::shared_ptr<WaitClock> clock;
    absl::Time started;         // The server's start by the machine's clock; sent as Restored.loaded_unix_us.
    v1::LocateResponse direct;  // Says where this server accepts exchanges without gRPC.
    v1::IdentifyResponse self;
    std::string machine = {};  // MachineClockName() of this machine.
    // Returns how the machine's clock relates to the coordinator's; nullopt: it is not known yet.
    std::function<std::optional<ClockOffset::Estimate>()> clock_offset = [] {
      return std::optional<ClockOffset::Estimate>();
    };
  };
  explicit ParameterService(Options options);

  // Ends all calls, including the streams of Exchange. False: some have not ended after `timeout`.
  bool Close(absl::Duration timeout);

  grpc::Status Attach(grpc::ServerContext* context, const v1::AttachRequest* request,
                      v1::AttachResponse* response) override;
  grpc::Status Locate(grpc::ServerContext* context, const v1::LocateRequest* request,
                      v1::LocateResponse* response) override;
  grpc::Status Pace(grpc::ServerContext* context, const v1::PaceRequest* request, v1::PaceResponse* response) override;
  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullResponse>* writer) override;
  grpc::Status KeepState(grpc::ServerContext* context, grpc::ServerReader<v1::KeepStateRequest>* reader,
                         v1::KeepStateResponse* response) override;
  grpc::Status FetchState(grpc::ServerContext* context, const v1::FetchStateRequest* request,
                          grpc::ServerWriter<v1::FetchStateResponse>* writer) override;
  grpc::Status Save(grpc::ServerContext* context, const v1::SaveRequest* request, v1::SaveResponse* response) override;
  grpc::Status ReadExchanges(grpc::ServerContext* context, const v1::ReadExchangesRequest* request,
                             v1::ReadExchangesResponse* response) override;
  grpc::Status Identify(grpc::ServerContext*, const v1::IdentifyRequest*, v1::IdentifyResponse* response) override {
    *response = options_.self;
    return grpc::Status::OK;
  }

 private:
  // Gets messages as raw bytes.
  grpc::Status RunInitialize(grpc::ServerContext* context, grpc::ServerReader<grpc::ByteBuffer>* reader);

  absl::Status NoteEnd(const v1::SaveRequest& request) const;
  // Calls ReplyTo.
  grpc::Status Reply(const grpc::ServerContext& context, absl::string_view call, const absl::Status& status) const;

  const Options options_;
  OpenCalls calls_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SERVICE_H_
