#ifndef HOOKE_WIRE_CALLS_TEST_SCRIPTED_SERVER_H_
#define HOOKE_WIRE_CALLS_TEST_SCRIPTED_SERVER_H_

// A parameter server for tests of calls: it answers what the test says, and then may hang. Real gRPC on loopback.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/parameter_server.grpc.pb.h"

namespace hooke {

class ScriptedServer final : public v1::ParameterServer::Service {
 public:
  struct Script {
    std::vector<v1::PullResponse> pulled = {};  // The messages that Pull sends at once.
    v1::ReadExchangesResponse exchanges = {};   // The answer of ReadExchanges.
    grpc::Status end = {};                      // The status with which both calls end.
    bool hangs = false;                         // Both calls end only when this object is destroyed, or by Cut.
  };
  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~ScriptedServer() override {
    if (!released_.HasBeenNotified()) released_.Notify();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  const std::string& address() const { return address_; }

  // Goes away, and cuts the calls that run, as a server that is stopped does.
  void Cut() {
    released_.Notify();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  grpc::Status Pull(grpc::ServerContext*, const v1::PullRequest*,
                    grpc::ServerWriter<v1::PullResponse>* writer) override {
    for (const v1::PullResponse& response : script_.pulled) writer->Write(response);
    return End();
  }
  grpc::Status ReadExchanges(grpc::ServerContext*, const v1::ReadExchangesRequest* request,
                             v1::ReadExchangesResponse* response) override {
    *response = script_.exchanges;
    // A test reads this field to see that its request has come.
    response->set_machine(request->job_id());
    return End();
  }

 private:
  grpc::Status End() {
    if (!script_.hangs) return script_.end;
    released_.WaitForNotificationWithTimeout(absl::Minutes(1));
    return {grpc::StatusCode::UNAVAILABLE, "this parameter server is stopping; try again"};
  }

  const Script script_;
  absl::Notification released_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace hooke

#endif  // HOOKE_WIRE_CALLS_TEST_SCRIPTED_SERVER_H_
