#include "server/parameters/test_group.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/parameters/test_frames.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

using grpc::internal::RpcMethod;

constexpr size_t kWindow = 16;

}  // namespace

TestGroup::TestGroup(TestCenter center, v1::Sender sender, const std::string& address)
    : center_(std::move(center)),
      sender_(std::move(sender)),
      partition_(center_.values),
      channel_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
      stub_(v1::ParameterServer::NewStub(channel_)) {}

absl::StatusOr<v1::AttachResponse> TestGroup::Attach() {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::AttachRequest request = MakeAttachRequest(center_);
  *request.mutable_sender() = sender_;
  v1::AttachResponse response;
  const absl::Status status = FromGrpc(stub_->Attach(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

absl::Status TestGroup::Initialize(absl::Span<const float> values) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::InitializeResponse response;
  const std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> stream(
      grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(
          channel_.get(), RpcMethod("/hooke.v1.ParameterServer/Initialize", RpcMethod::CLIENT_STREAMING), &context,
          &response));
  bool open = stream->Write(OpeningMessage(sender_));
  const Range blocks = partition_.ShardBlocks({center_.shard_index, center_.shard_count});
  for (uint64_t block = blocks.begin; open && block < blocks.end; ++block) {
    const Range range = partition_.BlockRange(block);
    open = stream->Write(ValuesMessage({0, range.begin}, values.subspan(range.begin, range.size())));
  }
  stream->WritesDone();
  return FromGrpc(stream->Finish());
}

absl::StatusOr<std::vector<float>> TestGroup::Pull() {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PullRequest request;
  request.set_job_id(center_.job_id);
  auto stream = stub_->Pull(&context, request);
  v1::PullResponse response;
  std::vector<float> all;
  while (stream->Read(&response)) {
    const std::string& bytes = response.block().values();
    all.resize(all.size() + bytes.size() / sizeof(float));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(all.data() + all.size()) - bytes.size());
  }
  const absl::Status status = FromGrpc(stream->Finish());
  if (!status.ok()) return status;
  return all;
}

absl::Status TestGroup::Exchange(const Call& call, absl::Span<float> x) {
  size_t done = 0;
  if (call.break_after < call.blocks.size()) {
    if (RunStream(call, x, &done, call.break_after).ok()) return absl::InternalError("the stream was to be cut");
  }
  return RunStream(call, x, &done, SIZE_MAX);
}

absl::Status TestGroup::RunStream(const Call& call, absl::Span<float> x, size_t* done, size_t stop_at) {
  grpc::ClientContext context;
  SetDeadline(&context);
  const std::unique_ptr<Stream> stream = OpenExchange(&context);
  bool open = stream->Write(OpeningMessage(sender_));
  size_t sent = *done;
  grpc::ByteBuffer response;
  while (open && *done < call.blocks.size()) {
    for (; open && sent < std::min(call.blocks.size(), *done + kWindow); ++sent) {
      const Range range = partition_.BlockRange(call.blocks[sent]);
      open = stream->Write(ValuesMessage({call.sequence, range.begin}, x.subspan(range.begin, range.size())));
    }
    if (*done == stop_at) context.TryCancel();
    open = open && stream->Read(&response);
    if (!open) break;
    const Range range = partition_.BlockRange(call.blocks[*done]);
    const absl::StatusOr<ReceivedValues> answer = ReadValues(response);
    if (!answer.ok() || answer->header.first != range.begin || answer->header.sequence != call.sequence ||
        answer->values.size() != range.size()) {
      return absl::InternalError("an answer does not fit its block");
    }
    for (uint64_t i = 0; i < range.size(); ++i) x[range.begin + i] -= answer->values[i];
    ++*done;
  }
  stream->WritesDone();
  return FromGrpc(stream->Finish());
}

std::unique_ptr<TestGroup::Stream> TestGroup::OpenExchange(grpc::ClientContext* context) {
  return std::unique_ptr<Stream>(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
      channel_.get(), RpcMethod("/hooke.v1.ParameterServer/Exchange", RpcMethod::BIDI_STREAMING), context));
}

std::vector<uint64_t> TestGroup::Blocks() const {
  const Range shard = partition_.ShardBlocks({center_.shard_index, center_.shard_count});
  const Range mine = Intersect(shard, partition_.SliceBlocks({sender_.rank(), center_.ranks}));
  std::vector<uint64_t> blocks;
  for (uint64_t block = mine.begin; block < mine.end; ++block) blocks.push_back(block);
  return blocks;
}

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
}

}  // namespace hooke
