#ifndef HOOKE_WORKER_RANK_RESTARTABLE_SERVER_TEST_H_
#define HOOKE_WORKER_RANK_RESTARTABLE_SERVER_TEST_H_

// A server process, as far as ranks can see: a real parameter server and gRPC on loopback, to test clients with. It can
// be stopped and started again on its port, with or without its disk.

#include <grpcpp/grpcpp.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/parameter_server.h"

namespace hooke {

class RestartableServer {
 public:
  // `direct_host`: as ParameterServerOptions.direct_host.
  explicit RestartableServer(std::string direct_host = "") : direct_host_(std::move(direct_host)) { Start(); }
  ~RestartableServer() { Stop(); }

  const std::string& address() const { return address_; }

  void Start() {
    ParameterServerOptions options;
    options.storage = storage_;
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    options.snapshot_interval = absl::Hours(1);
    options.direct_host = direct_host_;
    parameters_ = ParameterServer::Create(std::move(options)).value();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address_.empty() ? "127.0.0.1:0" : address_, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(parameters_->service());
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  // A second call does nothing.
  void Stop() {
    if (parameters_ == nullptr) return;
    EXPECT_TRUE(parameters_->Stop().ok());
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
    server_.reset();
    parameters_.reset();
  }
  // While it is stopped.
  void LoseDisk() { storage_ = std::make_shared<InMemoryStorage>(); }
  // While it runs.
  void Seal(const std::string& job) { EXPECT_TRUE(parameters_->Seal(job).ok()); }

 private:
  const std::string direct_host_;
  std::shared_ptr<Storage> storage_ = std::make_shared<InMemoryStorage>();
  std::string address_;
  std::unique_ptr<ParameterServer> parameters_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_RESTARTABLE_SERVER_TEST_H_
