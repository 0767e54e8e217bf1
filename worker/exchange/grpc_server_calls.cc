#include "worker/exchange/grpc_server_calls.h"

#include <grpcpp/grpcpp.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "proto/parameter_server.grpc.pb.h"
#include "wire/channel.h"
#include "wire/frame_buffer.h"
#include "wire/grpc_status.h"
#include "worker/exchange/blocks_frame.h"
#include "worker/exchange/direct_stream.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

// gRPC takes a deadline by the machine's clock, and from then on waits by a steady one.
std::chrono::system_clock::time_point ToDeadline(absl::Time steady) { return absl::ToChronoTime(WallTimeOf(steady)); }

absl::Status OfServer(const std::string& address, const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const absl::Status said = FromGrpc(status);
  return ForWantOf(address, absl::Status(said.code(), absl::StrCat("server ", address, ": ", said.message())));
}

using grpc::internal::RpcMethod;

constexpr int kStreamBytes = 4 << 20;
constexpr int kFrameBytes = 1 << 20;
constexpr size_t kStateChunkBytes = 256 << 10;

// The messages of these calls are our own frames (wire/frame.h), not protobufs. So we make the calls as generated code
// does, but with gRPC's byte buffers as messages.
constexpr char kInitialize[] = "/hooke.v1.ParameterServer/Initialize";
constexpr char kExchange[] = "/hooke.v1.ParameterServer/Exchange";

grpc::ByteBuffer OpeningMessage(const v1::Sender& sender) {
  const grpc::Slice slice(EncodeOpening(sender));
  return {&slice, 1};
}

// Copies the values: gRPC may send them after the caller has changed them.
grpc::ByteBuffer ValuesMessage(const BlocksToSend& blocks, FramePool& pool) {
  const absl::Span<const char> payload = PayloadOf(blocks);
  OutgoingFrame frame = pool.Make(payload.size());
  std::copy(payload.begin(), payload.end(), frame.payload().begin());
  return std::move(frame).Seal(HeaderOf(blocks));
}

absl::Status ReadAnswer(const grpc::ByteBuffer& message, const ExpectedAnswer& expected, std::vector<char>& encoded,
                        AnsweredBlocks* answer) {
  absl::StatusOr<IncomingFrame> frame = IncomingFrame::Parse(message);
  if (!frame.ok()) return frame.status();
  if (frame->kind() != FrameKind::kValues) return absl::InternalError("an answer is no message of values");
  absl::StatusOr<ValuesHeader> header = frame->Header();
  if (!header.ok()) return header.status();
  const absl::StatusOr<absl::Span<char>> payload = RoomFor(*header, expected, encoded, answer);
  if (!payload.ok()) return payload.status();
  frame->CopyPayload(*payload);
  return DecodeAnswer(*header, *payload, answer);
}

class GrpcExchangeStream : public ExchangeStream {
 public:
  GrpcExchangeStream(std::shared_ptr<grpc::Channel> channel, v1::Sender sender, std::string address)
      : channel_(std::move(channel)), sender_(std::move(sender)), address_(std::move(address)) {
    stream_.reset(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
        channel_.get(), RpcMethod(kExchange, RpcMethod::BIDI_STREAMING), &context_));
  }
  ~GrpcExchangeStream() override {
    if (finished_) return;
    context_.TryCancel();
    grpc::ByteBuffer ignored;
    while (stream_->Read(&ignored)) {
    }
    stream_->Finish();
  }

  bool Write(const BlocksToSend& blocks) override {
    // The opening message is buffered, so that it leaves together with the first values.
    const auto later = grpc::WriteOptions().set_buffer_hint();
    if (!opened_ && !stream_->Write(OpeningMessage(sender_), later)) return false;
    opened_ = true;
    sent_.Note(blocks);
    return stream_->Write(ValuesMessage(blocks, pool_));
  }

  bool Read(AnsweredBlocks* answer) override {
    grpc::ByteBuffer message;
    if (!stream_->Read(&message)) return false;
    malformed_ = ReadAnswer(message, sent_.Expected(), encoded_, answer);
    if (malformed_.ok()) return true;
    context_.TryCancel();
    while (stream_->Read(&message)) {
    }
    return false;
  }

  void Cancel() override { context_.TryCancel(); }

  absl::Status Finish() override {
    finished_ = true;
    absl::Status status = OfServer(address_, stream_->Finish());
    if (!malformed_.ok())
      return absl::InternalError(absl::StrCat("server ", address_, " sent: ", malformed_.message()));
    // gRPC has one code for a broken connection and for a refusal by the server. After a refusal the channel still
    // lives.
    const bool lives = channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
    if (!status.ok()) return lives ? SaidByServer(status) : status;
    // A server that ends the stream without an error, while answers are missing, is shutting down.
    return ForWantOf(address_, absl::UnavailableError(absl::StrCat("server ", address_, " ended the exchange")));
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const v1::Sender sender_;
  const std::string address_;
  FramePool pool_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream_;
  SentMessages sent_;
  bool opened_ = false;        // Used by the writing thread only.
  std::vector<char> encoded_;  // The reading thread's buffer for an encoded answer.
  absl::Status malformed_;     // Set by the reading thread, read by Finish.
  bool finished_ = false;
};

class GrpcLocateCall : public LocateCall {
 public:
  GrpcLocateCall(const std::shared_ptr<grpc::Channel>& channel, std::string address)
      : address_(std::move(address)), stub_(v1::ParameterServer::NewStub(channel)) {}

  absl::StatusOr<v1::LocateResponse> Run() override {
    v1::LocateResponse response;
    absl::Status status = OfServer(address_, stub_->Locate(&context_, v1::LocateRequest(), &response));
    if (!status.ok()) return status;
    return response;
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  const std::string address_;
  const std::unique_ptr<v1::ParameterServer::Stub> stub_;
  grpc::ClientContext context_;
};

class GrpcServerCalls : public ServerCalls {
 public:
  GrpcServerCalls(std::string address, const std::shared_ptr<grpc::Channel>& channel, const DialOptions& options)
      : address_(std::move(address)),
        channel_(channel),
        stub_(v1::ParameterServer::NewStub(channel)),
        options_(options) {}

  const std::string& address() const override { return address_; }

  absl::StatusOr<v1::AttachResponse> Attach(const v1::AttachRequest& request, absl::Time deadline) override {
    return Call(&v1::ParameterServer::Stub::Attach, request, deadline);
  }

  absl::Status Initialize(const InitialValues& values, absl::Time deadline) override {
    grpc::ClientContext context;
    context.set_deadline(ToDeadline(deadline));
    v1::InitializeResponse response;
    const std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> writer(
        grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(
            channel_.get(), RpcMethod(kInitialize, RpcMethod::CLIENT_STREAMING), &context, &response));
    FramePool pool;
    bool open = writer->Write(OpeningMessage(values.sender));
    for (uint64_t first = values.shard.begin; open && first < values.shard.end;) {
      const uint64_t block = values.partition.BlockOf(first);
      const Range range = Intersect(values.shard, values.partition.Values({block, block + kMessageBlocks}));
      open = writer->Write(
          ValuesMessage({values.sequence, range.begin, values.vector.subspan(range.begin, range.size())}, pool));
      first = range.end;
    }
    writer->WritesDone();
    return OfServer(address_, writer->Finish());
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
    const absl::Status status = OfServer(address_, reader->Finish());
    return refused.ok() ? status : refused;
  }

  absl::StatusOr<v1::PaceResponse> Pace(const v1::PaceRequest& request, absl::Time deadline) override {
    return Call(&v1::ParameterServer::Stub::Pace, request, deadline);
  }

  absl::Status Save(const v1::SaveRequest& request, absl::Time deadline) override {
    return Call(&v1::ParameterServer::Stub::Save, request, deadline).status();
  }

  absl::Status KeepState(const StateToKeep& state, absl::Time deadline) override {
    grpc::ClientContext context;
    context.set_deadline(ToDeadline(deadline));
    v1::KeepStateResponse response;
    auto writer = stub_->KeepState(&context, &response);
    v1::KeepStateRequest message;
    *message.mutable_header() = state.header;
    message.mutable_header()->set_bytes(state.state.size());
    message.mutable_header()->set_crc32(StateChecksum(state.state));
    bool open = writer->Write(message);
    for (size_t at = 0; open && at < state.state.size(); at += kStateChunkBytes) {
      message.set_chunk(std::string(state.state.substr(at, kStateChunkBytes)));
      open = writer->Write(message);
    }
    writer->WritesDone();
    return OfServer(address_, writer->Finish());
  }

  absl::StatusOr<FetchedState> FetchState(const v1::FetchStateRequest& request, absl::Time deadline) override {
    grpc::ClientContext context;
    context.set_deadline(ToDeadline(deadline));
    auto reader = stub_->FetchState(&context, request);
    FetchedState fetched;
    v1::FetchStateResponse::Header header;
    v1::FetchStateResponse response;
    while (reader->Read(&response)) {
      if (response.has_header()) header = response.header();
      fetched.state += response.chunk();
    }
    if (absl::Status status = OfServer(address_, reader->Finish()); !status.ok()) return status;
    if (header.bytes() != fetched.state.size() || header.crc32() != StateChecksum(fetched.state)) {
      return absl::DataLossError(absl::StrCat("server ", address_, " sent a state of ", fetched.state.size(),
                                              " bytes whose length or CRC-32 is not the announced one"));
    }
    fetched.states.assign(header.states().begin(), header.states().end());
    return fetched;
  }

  absl::StatusOr<v1::LocateResponse> Locate(const v1::Sender& sender, absl::Time deadline) override {
    v1::LocateRequest request;
    *request.mutable_sender() = sender;
    return Call(&v1::ParameterServer::Stub::Locate, request, deadline);
  }

  std::shared_ptr<ExchangeStream> OpenExchange(const v1::Sender& sender) override {
    const auto by_grpc = [channel = channel_, address = address_, sender]() -> std::shared_ptr<ExchangeStream> {
      return std::make_shared<GrpcExchangeStream>(channel, sender, address);
    };
    if (!options_.local && !options_.direct) return by_grpc();
    return OpenDirectStream({address_, sender, options_.local, options_.direct,
                             std::make_unique<GrpcLocateCall>(channel_, address_), by_grpc});
  }

 private:
  // Makes a call of one request and one answer. Its error names the server.
  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(grpc::Status (v1::ParameterServer::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                                  Response*),
                                const Request& request, absl::Time deadline) {
    grpc::ClientContext context;
    context.set_deadline(ToDeadline(deadline));
    Response response;
    absl::Status status = OfServer(address_, (stub_.get()->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  const std::string address_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ParameterServer::Stub> stub_;
  const DialOptions options_;
};

}  // namespace

DialOptions DialOptionsOf(const v1::GroupStart& start) {
  DialOptions options;
  if (!start.job_credential().empty()) options.credential = {start.job_credential(), start.job_id()};
  return options;
}

uint32_t StateChecksum(absl::string_view state) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(state.data()), state.size()));
}

std::unique_ptr<ServerCalls> DialServer(const std::string& address, const DialOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);  // A pull's header carries the layout, which may be large.
  arguments.SetMaxSendMessageSize(64 << 20);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // These sizes are large enough for the answers of a whole window, in few frames and reads.
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  arguments.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, kFrameBytes);
  SetReconnect(arguments, absl::Milliseconds(100));
  // Keepalive finds out if a firewall has silently dropped the connection between two exchanges.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // Other channels' backoff does not delay this one.
  return std::make_unique<GrpcServerCalls>(address, OpenChannel(address, arguments, options.credential), options);
}

}  // namespace hooke
