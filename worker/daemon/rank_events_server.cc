#include "worker/daemon/rank_events_server.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "proto/worker.grpc.pb.h"

namespace hooke {
namespace {

class Service final : public v1::RankEvents::Service {
 public:
  explicit Service(RankEventSink& sink) : sink_(sink) {}

  grpc::Status Report(grpc::ServerContext*, grpc::ServerReaderWriter<v1::RankCommand, v1::RankEvent>* stream) override {
    v1::RankEvent event;
    if (!stream->Read(&event) || !event.has_hello()) {
      return grpc::Status(grpc::INVALID_ARGUMENT, "the first event of a rank must be hello");
    }
    const uint32_t rank = event.hello().rank();
    if (absl::Status status = sink_.RankHello(event.hello()); !status.ok()) {
      return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
    }
    stream->Write(v1::RankCommand());
    grpc::Status status;
    while (stream->Read(&event)) {
      if (event.has_hello()) {
        status = grpc::Status(grpc::INVALID_ARGUMENT, "a rank says hello only once");
        break;
      }
      if (event.event_case() != v1::RankEvent::EVENT_NOT_SET) sink_.RankEvent(rank, event);
    }
    sink_.RankStreamEnded(rank);
    return status;
  }

 private:
  RankEventSink& sink_;
};

class Server final : public RankEventsServer {
 public:
  explicit Server(RankEventSink& sink) : service_(sink) {}

  absl::Status Listen(const std::string& socket) {
    grpc::ServerBuilder builder;
    int bound = 0;
    builder.AddListeningPort(absl::StrCat("unix:", socket), grpc::InsecureServerCredentials(), &bound);
    builder.RegisterService(&service_);
    // Each rank's stream takes a thread for its whole life; waiting for new ones needs no more than one.
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && bound != 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot listen on the unix socket ", socket));
  }

  ~Server() override {
    // Streams of ranks that have ended are read to their end first: their last words are in them.
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;  // Destroyed before the service.
};

}  // namespace

absl::StatusOr<std::unique_ptr<RankEventsServer>> RankEventsServer::Start(const std::string& socket,
                                                                          RankEventSink& sink) {
  auto server = std::make_unique<Server>(sink);
  if (absl::Status status = server->Listen(socket); !status.ok()) return status;
  return server;
}

}  // namespace hooke
