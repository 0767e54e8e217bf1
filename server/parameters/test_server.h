#ifndef HOOKE_SERVER_PARAMETERS_TEST_SERVER_H_
#define HOOKE_SERVER_PARAMETERS_TEST_SERVER_H_

// A parameter server as groups see it: real gRPC on loopback. For tests.

#include <grpcpp/grpcpp.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/parameters/parameter_server.h"
#include "server/parameters/storage.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_group.h"

namespace hooke {

// Returns options of a server that writes no snapshots at intervals, and logs nothing.
inline ParameterServerOptions TestServerOptions(std::shared_ptr<Storage> storage) {
  ParameterServerOptions options;
  options.storage = std::move(storage);
  options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
  options.snapshot_interval = absl::Hours(1);
  return options;
}

// A ParameterServer behind a grpc::Server, by default on a free port.
class TestServer {
 public:
  explicit TestServer(const ParameterServerOptions& options, const std::string& address = "127.0.0.1:0")
      : parameters_(ParameterServer::Create(options).value()) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(parameters_->service());
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  explicit TestServer(std::shared_ptr<Storage> storage) : TestServer(TestServerOptions(std::move(storage))) {}
  ~TestServer() {
    EXPECT_TRUE(parameters_->Stop().ok());
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  const std::string& address() const { return address_; }
  ParameterServer& parameters() { return *parameters_; }

 private:
  std::unique_ptr<ParameterServer> parameters_;
  std::unique_ptr<grpc::Server> server_;  // Destroyed before the ParameterServer, because it uses its service.
  std::string address_;
};

// Returns a center of six blocks, of which the last is short.
inline TestCenter LargeCenter() {
  TestCenter center;
  center.values = 5 * kBlockValues + 100;
  return center;
}

// Returns a client for one rank of a group, with one server that holds the whole center.
inline TestGroup MakeGroup(const TestServer& server, const TestCenter& center, uint32_t group = 0, uint32_t rank = 0,
                           uint32_t incarnation = 1) {
  return TestGroup(center, MakeSender(center, group, rank, incarnation), server.address());
}

inline void MakeCenter(const TestServer& server, const TestCenter& center) {
  TestGroup group = MakeGroup(server, center);
  ASSERT_EQ(group.Attach().value().state(), v1::AttachResponse::INITIALIZE);
  ASSERT_TRUE(group.Initialize(Ramp(0, center.values)).ok());
  ASSERT_EQ(group.Attach().value().state(), v1::AttachResponse::READY);
}

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_SERVER_H_
