#ifndef HOOKE_SERVER_PARAMETERS_SERVICE_H_
#define HOOKE_SERVER_PARAMETERS_SERVICE_H_

// The gRPC service hooke.v1.ParameterServer. Each handler checks its message, calls the store and replies.

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
    absl::Time started;         // The server's start by the machine's clock; sent as Restored.loaded_unix_us.
    v1::LocateResponse direct;  // Says where this server accepts exchanges without gRPC.
    v1::IdentifyResponse self;
  };
  explicit ParameterService(Options options);

  // Ends all calls (OpenCalls::Close), and all waits for a seat (RankSeats::Stop).
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
  grpc::Status Identify(grpc::ServerContext*, const v1::IdentifyRequest*, v1::IdentifyResponse* response) override {
    *response = options_.self;
    return grpc::Status::OK;
  }

 private:
  // Initialize and Exchange get messages as raw bytes. Each stream has its own thread, which may wait for other groups;
  // the server's ResourceQuota bounds their number. Connections without gRPC need no thread to wait
  // (direct_exchanges.h).
  // A rank has one stream of Exchange at a time, besides a few earlier ones that still wait for a round (rank_seats.h).
  grpc::Status RunInitialize(grpc::ServerContext* context, grpc::ServerReader<grpc::ByteBuffer>* reader);
  grpc::Status RunExchange(grpc::ServerContext* context,
                           grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>* stream);

  absl::Status NoteEnd(const v1::SaveRequest& request) const;
  // Converts the status to gRPC's. Errors are logged with the caller's address.
  grpc::Status Reply(const grpc::ServerContext& context, absl::string_view call, const absl::Status& status) const;

  const Options options_;
  OpenCalls calls_;
  std::atomic<uint64_t> exchanges_{0};  // Number of Exchange streams so far.
  RankSeats seats_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SERVICE_H_
