#ifndef HOOKE_SERVER_PARAMETERS_TEST_GRPC_EXCHANGES_H_
#define HOOKE_SERVER_PARAMETERS_TEST_GRPC_EXCHANGES_H_

// GrpcExchanges behind real gRPC on loopback, and streams to it. For tests.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/parameters/grpc_exchanges.h"
#include "server/parameters/service.h"
#include "server/parameters/test_frames.h"
#include "server/parameters/test_group.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

// A server of `store` on a free port.
class TestGrpcExchanges {
 public:
  TestGrpcExchanges(ParameterStore* store, const std::shared_ptr<spdlog::logger>& logger,
                    GrpcExchanges::Options options = {}) {
    const auto clock = std::make_shared<SteadyWaitClock>();
    options.store = store;
    options.logger = logger;
    options.clock = clock;
    exchanges_ = GrpcExchanges::Start(std::move(options)).value();
    service_ = std::make_unique<ParameterService>(
        ParameterService::Options{store, exchanges_.get(), logger, clock, absl::Now(), {}, {}});
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~TestGrpcExchanges() {
    service_->Close(absl::Seconds(5));
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  }
  TestGrpcExchanges(const TestGrpcExchanges&) = delete;
  TestGrpcExchanges& operator=(const TestGrpcExchanges&) = delete;

  const std::string& address() const { return address_; }
  bool Close(absl::Duration timeout) { return service_->Close(timeout); }

 private:
  std::unique_ptr<GrpcExchanges> exchanges_;
  std::unique_ptr<ParameterService> service_;
  std::unique_ptr<grpc::Server> server_;  // Destroyed first, because it uses the others.
  std::string address_;
};

// A client's stream of Exchange.
class TestStream {
 public:
  TestStream(TestGroup& group, const v1::Sender& sender) {
    SetDeadline(&context_);
    stream_ = group.OpenExchange(&context_);
    stream_->Write(OpeningMessage(sender));
  }
  bool Send(uint64_t sequence, const std::vector<float>& values) {
    return stream_->Write(ValuesMessage({sequence, 0}, values));
  }
  // Returns the values of the next answer; empty if the stream has ended.
  std::vector<float> Receive() {
    grpc::ByteBuffer answer;
    if (!stream_->Read(&answer)) return {};
    return ReadValues(answer).value().values;
  }
  void Cancel() { context_.TryCancel(); }
  grpc::Status Finish() { return stream_->Finish(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<TestGroup::Stream> stream_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_GRPC_EXCHANGES_H_
