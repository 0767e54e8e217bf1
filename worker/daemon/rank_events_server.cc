#include "worker/daemon/rank_events_server.h"

#include <chrono>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "proto/worker.grpc.pb.h"
#include "wire/admission.h"

namespace hooke {

class RankEventsServer::Service final : public v1::RankEvents::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::RankCommand, v1::RankEvent>;

  explicit Service(RankEventCallbacks callbacks) : callbacks_(std::move(callbacks)) {}

  grpc::Status Report(grpc::ServerContext*, Stream* stream) override {
    v1::RankEvent event;
    if (!stream->Read(&event) || !event.has_hello()) {
      return grpc::Status(grpc::INVALID_ARGUMENT, "the first event of a rank must be hello");
    }
    const uint32_t rank = event.hello().rank();
    if (absl::Status status = callbacks_.hello(event.hello()); !status.ok()) {
      return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
    }
    {
      absl::MutexLock lock(&mutex_);
      stream->Write(v1::RankCommand());
      if (!leave_.leave().empty()) stream->Write(leave_);
      streams_.insert(stream);
    }
    grpc::Status status;
    while (stream->Read(&event)) {
      if (event.has_hello()) {
        status = grpc::Status(grpc::INVALID_ARGUMENT, "a rank says hello only once");
        break;
      }
      if (event.event_case() != v1::RankEvent::EVENT_NOT_SET) callbacks_.event(rank, event);
    }
    {
      absl::MutexLock lock(&mutex_);
      streams_.erase(stream);
    }
    callbacks_.stream_ended(rank);
    return status;
  }

  void Leave(const std::string& why) {
    absl::MutexLock lock(&mutex_);
    if (!leave_.leave().empty()) return;
    leave_.set_leave(why);
    for (Stream* stream : streams_) stream->Write(leave_);
  }

  grpc::Status StartRemote(grpc::ServerContext*, const v1::StartRemoteRequest* request,
                           v1::StartRemoteResponse*) override {
    const absl::Status status = callbacks_.start_remote(*request);
    return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
  }

 private:
  const RankEventCallbacks callbacks_;
  absl::Mutex mutex_;  // Held while a stream is written to. A command is so short that no rank can block it.
  std::set<Stream*> streams_ ABSL_GUARDED_BY(mutex_);  // Of the ranks that have said hello.
  // The command of Leave, for ranks that say hello later. Empty: Leave was not called.
  v1::RankCommand leave_ ABSL_GUARDED_BY(mutex_);
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

void RankEventsServer::Leave(const std::string& why) { service_->Leave(why); }

RankEventsServer::~RankEventsServer() {
  // Streams of ranks that have ended are read to their end first, because their last reports are still in them.
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
}

}  // namespace hooke
