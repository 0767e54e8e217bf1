#include "server/parameters/service.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/parameters/exchange_session.h"

namespace hooke {
namespace {

grpc::Status Stopping() { return {grpc::StatusCode::UNAVAILABLE, "this parameter server is stopping; try again"}; }

absl::Status ReadInitialize(grpc::ServerReader<v1::InitializeRequest>* reader, const ParameterService::Options& options,
                            const grpc::ServerContext& context) {
  InitializeSession session(options.store);
  v1::InitializeRequest request;
  while (reader->Read(&request)) {
    absl::StatusOr<bool> more = session.Receive(options.clock(), request);
    if (!more.ok()) return more.status();
    if (!*more) return session.Finish();
  }
  // A stream that broke looks like one that ended.
  if (context.IsCancelled()) return absl::CancelledError("Initialize was cancelled before its end");
  return session.Finish();
}

absl::Status RunExchange(grpc::ServerReaderWriter<v1::ExchangeResponse, v1::ExchangeRequest>* stream,
                         const ParameterStore* store) {
  ExchangeSession session(store);
  v1::ExchangeRequest request;
  v1::ExchangeResponse response;
  while (stream->Read(&request)) {
    absl::StatusOr<bool> answered = session.Receive(request, &response);
    if (!answered.ok()) return answered.status();
    if (*answered && !stream->Write(response)) return absl::CancelledError("the exchange's stream broke");
  }
  return absl::OkStatus();
}

absl::Status WritePull(const std::string& job_id, const ParameterStore& store,
                       grpc::ServerWriter<v1::PullResponse>* writer) {
  if (absl::Status status = CheckJobId(job_id); !status.ok()) return status;
  v1::PullResponse response;
  const auto send = [&]() {
    return writer->Write(response) ? absl::OkStatus() : absl::CancelledError("the pull's stream broke");
  };
  const auto header = [&](const ParameterStore::CenterHeader& center) {
    v1::PullResponse::Header* message = response.mutable_header();
    *message->mutable_layout() = center.plan->layout;
    message->set_shard_index(center.plan->job.shard_index());
    message->set_shard_count(center.plan->job.shard_count());
    message->set_updates(center.updates);
    return send();
  };
  const auto block = [&](uint64_t first, absl::Span<const float> values) {
    EncodeBlock(first, values, response.mutable_block());
    return send();
  };
  return store.ReadCenter(job_id, {header, block});
}

}  // namespace

grpc::Status ParameterService::Attach(grpc::ServerContext* context, const v1::AttachRequest* request,
                                      v1::AttachResponse* response) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  absl::StatusOr<v1::AttachResponse> attached = options_.store->Attach(options_.clock(), *request);
  if (!attached.ok()) return Reply(*context, "Attach", attached.status());
  *response = *std::move(attached);
  return grpc::Status::OK;
}

grpc::Status ParameterService::Initialize(grpc::ServerContext* context,
                                          grpc::ServerReader<v1::InitializeRequest>* reader,
                                          v1::InitializeResponse* /*response*/) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  return Reply(*context, "Initialize", ReadInitialize(reader, options_, *context));
}

grpc::Status ParameterService::Exchange(grpc::ServerContext* context,
                                        grpc::ServerReaderWriter<v1::ExchangeResponse, v1::ExchangeRequest>* stream) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  return Reply(*context, "Exchange", RunExchange(stream, options_.store));
}

grpc::Status ParameterService::Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                                    grpc::ServerWriter<v1::PullResponse>* writer) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  return Reply(*context, "Pull", WritePull(request->job_id(), *options_.store, writer));
}

grpc::Status ParameterService::Save(grpc::ServerContext* context, const v1::SaveRequest* request,
                                    v1::SaveResponse* /*response*/) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  if (absl::Status status = CheckJobId(request->job_id()); !status.ok()) return Reply(*context, "Save", status);
  return Reply(*context, "Save", options_.store->Save(request->job_id()));
}

grpc::Status ParameterService::Reply(const grpc::ServerContext& context, absl::string_view call,
                                     const absl::Status& status) const {
  if (status.ok()) return grpc::Status::OK;
  options_.logger->warn("{} from {} refused: {}", std::string(call), context.peer(), status.ToString());
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace hooke
