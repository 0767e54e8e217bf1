#include "worker/daemon/rank_events_server.h"

#include <chrono>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "proto/worker.grpc.pb.h"
#include "wire/admission.h"

namespace hooke {

class RankEventsServer::Service final : public v1::RankEvents::Service {
 public:
  explicit Service(RankEventCallbacks callbacks) : callbacks_(std::move(callbacks)) {}

  grpc::Status Report(grpc::ServerContext*, grpc::ServerReaderWriter<v1::RankCommand, v1::RankEvent>* stream) override {
    v1::RankEvent event;
    if (!stream->Read(&event) || !event.has_hello()) {
      return grpc::Status(grpc::INVALID_ARGUMENT, "the first event of a rank must be hello");
    }
    const uint32_t rank = event.hello().rank();
    if (absl::Status status = callbacks_.hello(event.hello()); !status.ok()) {
      return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
    }
    stream->Write(v1::RankCommand());
    grpc::Status status;
    while (stream->Read(&event)) {
      if (event.has_hello()) {
        status = grpc::Status(grpc::INVALID_ARGUMENT, "a rank says hello only once");
        break;
      }
      if (event.event_case() != v1::RankEvent::EVENT_NOT_SET) callbacks_.event(rank, event);
    }
    callbacks_.stream_ended(rank);
    return status;
  }

  grpc::Status StartRemote(grpc::ServerContext*, const v1::StartRemoteRequest* request,
                           v1::StartRemoteResponse*) override {
    const absl::Status status = callbacks_.start_remote(*request);
    return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
  }

 private:
  const RankEventCallbacks callbacks_;
};

absl::StatusOr<std::unique_ptr<RankEventsServer>> RankEventsServer::Start(const std::string& socket,
                                                                          RankEventCallbacks callbacks) {
  auto server = absl::WrapUnique(new RankEventsServer(std::move(callbacks)));
  grpc::ServerBuilder builder;
  int bound = 0;
  // The socket's folder lets in nobody but the worker's user, so ranks need no credential.
  builder.AddListeningPort(absl::StrCat("unix:", socket), ListenCredentials({}), &bound);
  builder.RegisterService(server->service_.get());
  // Each rank's stream has a thread of its own for its whole life. One more thread is enough to wait for new streams.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  server->server_ = builder.BuildAndStart();
  if (server->server_ != nullptr && bound != 0) return server;
  return absl::UnavailableError(absl::StrCat("cannot listen on the unix socket ", socket));
}

RankEventsServer::RankEventsServer(RankEventCallbacks callbacks)
    : service_(std::make_unique<Service>(std::move(callbacks))) {}

RankEventsServer::~RankEventsServer() {
  // Streams of ranks that have ended are read to their end first, because their last reports are still in them.
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
}

}  // namespace hooke
