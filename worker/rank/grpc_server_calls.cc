#include "worker/rank/grpc_server_calls.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/parameter_server.grpc.pb.h"
#include "worker/rank/blocks.h"

namespace hooke {
namespace {

std::chrono::system_clock::time_point ToDeadline(absl::Time time) { return absl::ToChronoTime(time); }

absl::Status FromGrpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat("server ", address, ": ", status.error_message()));
}

class GrpcExchangeStream : public ExchangeStream {
 public:
  GrpcExchangeStream(v1::ParameterServer::Stub& stub, std::string address) : address_(std::move(address)) {
    stream_ = stub.Exchange(&context_);
  }
  ~GrpcExchangeStream() override {
    if (finished_) return;
    context_.TryCancel();
    v1::ExchangeResponse ignored;
    while (stream_->Read(&ignored)) {
    }
    stream_->Finish();
  }

  bool Write(const v1::ExchangeRequest& request) override { return stream_->Write(request); }
  bool Read(v1::ExchangeResponse* response) override { return stream_->Read(response); }
  void Cancel() override { context_.TryCancel(); }
  absl::Status Finish() override {
    finished_ = true;
    absl::Status status = FromGrpc(stream_->Finish(), address_);
    // A server that ends the stream in good order while we want answers is going away.
    return status.ok() ? absl::UnavailableError(absl::StrCat("server ", address_, " ended the exchange")) : status;
  }

 private:
  const std::string address_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ExchangeRequest, v1::ExchangeResponse>> stream_;
  bool finished_ = false;
};

class GrpcServerCalls : public ServerCalls {
 public:
  GrpcServerCalls(std::string address, const std::shared_ptr<grpc::Channel>& channel)
      : address_(std::move(address)), stub_(v1::ParameterServer::NewStub(channel)) {}

  const std::string& address() const override { return address_; }

  absl::StatusOr<v1::AttachResponse> Attach(const v1::AttachRequest& request, absl::Time deadline) override {
    grpc::ClientContext context;
    context.set_deadline(ToDeadline(deadline));
    v1::AttachResponse response;
    absl::Status status = FromGrpc(stub_->Attach(&context, request, &response), address_);
    if (!status.ok()) return status;
    return response;
  }

  absl::Status Initialize(const InitialValues& values, absl::Time deadline) override {
    grpc::ClientContext context;
    context.set_deadline(ToDeadline(deadline));
    v1::InitializeResponse response;
    auto writer = stub_->Initialize(&context, &response);
    v1::InitializeRequest request;
    *request.mutable_header()->mutable_sender() = values.sender;
    bool open = writer->Write(request);
    for (uint64_t first = values.shard.begin; open && first < values.shard.end;) {
      const Range range = values.partition.BlockRange(values.partition.BlockOf(first));
      WriteBlock(values.vector, range, request.mutable_block());
      open = writer->Write(request);
      first = range.end;
    }
    writer->WritesDone();
    return FromGrpc(writer->Finish(), address_);
  }

  absl::Status Pull(const std::string& job_id, absl::Time deadline,
                    const std::function<absl::Status(const v1::PullResponse&)>& sink) override {
    grpc::ClientContext context;
    context.set_deadline(ToDeadline(deadline));
    v1::PullRequest request;
    request.set_job_id(job_id);
    auto reader = stub_->Pull(&context, request);
    v1::PullResponse response;
    absl::Status refused;
    while (refused.ok() && reader->Read(&response)) refused = sink(response);
    if (!refused.ok()) {
      context.TryCancel();
      while (reader->Read(&response)) {
      }
    }
    const absl::Status status = FromGrpc(reader->Finish(), address_);
    return refused.ok() ? status : refused;
  }

  absl::Status Save(const std::string& job_id, absl::Time deadline) override {
    grpc::ClientContext context;
    context.set_deadline(ToDeadline(deadline));
    v1::SaveRequest request;
    request.set_job_id(job_id);
    v1::SaveResponse response;
    return FromGrpc(stub_->Save(&context, request, &response), address_);
  }

  std::shared_ptr<ExchangeStream> OpenExchange() override {
    return std::make_shared<GrpcExchangeStream>(*stub_, address_);
  }

 private:
  const std::string address_;
  std::unique_ptr<v1::ParameterServer::Stub> stub_;
};

}  // namespace

std::unique_ptr<ServerCalls> DialServer(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);  // A pull's header carries the layout.
  arguments.SetMaxSendMessageSize(64 << 20);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Finds a connection that a firewall has silently dropped between two exchanges.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // Backoff of this channel alone.
  return std::make_unique<GrpcServerCalls>(
      address, grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

}  // namespace hooke
