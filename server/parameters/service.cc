#include "server/parameters/service.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "server/parameters/call_reply.h"
#include "server/parameters/exchange_session.h"
#include "server/parameters/parameter_server.h"
#include "server/parameters/served_exchanges.h"
#include "server/parameters/state_session.h"
#include "wire/admission.h"

namespace hooke {
namespace {

// Returns a call's index within its service, in the order of proto/parameter_server.proto.
int MethodIndex(const char* name) {
  return v1::Frame::descriptor()->file()->service(0)->FindMethodByName(name)->index();
}

absl::Status ReadInitialize(grpc::ServerReader<grpc::ByteBuffer>* reader, const ParameterService::Options& options,
                            const grpc::ServerContext& context) {
  InitializeSession session(options.store);
  grpc::ByteBuffer message;
  while (reader->Read(&message)) {
    absl::StatusOr<bool> more = session.Receive(options.clock->Now(), message);
    if (!more.ok()) return more.status();
    if (!*more) return session.Finish();
  }
  // Read returns false for a broken stream as well as for one that the client has ended. IsCancelled tells these apart.
  if (context.IsCancelled()) return absl::CancelledError("Initialize was cancelled before its end");
  return session.Finish();
}

void AddExchanges(const std::vector<ServedRow>& rows, v1::ReadExchangesResponse& response) {
  for (const ServedRow& row : rows) {
    v1::ServedExchange& exchange = *response.add_exchanges();
    exchange.set_group(row.of.group);
    exchange.set_rank(row.of.rank);
    exchange.set_incarnation(row.of.incarnation);
    exchange.set_sequence(row.of.sequence);
    exchange.set_begin_ns(static_cast<uint64_t>(row.begin_ns));
    exchange.set_duration_ns(static_cast<uint64_t>(row.end_ns - row.begin_ns));
    exchange.set_work_ns(static_cast<uint64_t>(row.work_ns));
    exchange.set_wait_ns(static_cast<uint64_t>(row.wait_ns));
    exchange.set_messages(row.messages);
    exchange.set_received_bytes(row.received_bytes);
    exchange.set_sent_bytes(row.sent_bytes);
  }
}

absl::Status WritePull(const std::string& job_id, ParameterStore& store, grpc::ServerWriter<v1::PullResponse>* writer) {
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
    response.mutable_block()->set_first(first);
    response.mutable_block()->set_values(values.data(), values.size() * sizeof(float));
    return send();
  };
  return store.ReadCenter(job_id, {header, block});
}

}  // namespace

std::set<std::string> MethodsForRanks() {
  std::set<std::string> paths;
  for (const char* name : {"Attach", "Initialize", "Exchange", "Locate", "Pace", "Pull", "Save", "KeepState",
                           "FetchState", "ReadExchanges"}) {
    paths.insert(absl::StrCat("/", v1::ParameterServer::service_full_name(), "/", name));
  }
  return paths;
}

// Registers both streams as generated code does, but with raw bytes as messages: they are frames of docs/wire.md, not
// Protocol Buffers.
ParameterService::ParameterService(Options options) : options_(std::move(options)) {
  using grpc::ByteBuffer;
  using grpc::internal::CallbackBidiHandler;
  using grpc::internal::ClientStreamingHandler;
  const auto initialize = [](ParameterService* service, grpc::ServerContext* context,
                             grpc::ServerReader<ByteBuffer>* reader,
                             v1::InitializeResponse*) { return service->RunInitialize(context, reader); };
  const auto exchange = [this](grpc::CallbackServerContext* context) { return options_.exchanges->Serve(context); };
  MarkMethodStreamed(
      MethodIndex("Initialize"),
      new ClientStreamingHandler<ParameterService, ByteBuffer, v1::InitializeResponse>(initialize, this));
  MarkMethodRawCallback(MethodIndex("Exchange"), new CallbackBidiHandler<ByteBuffer, ByteBuffer>(exchange));
}

bool ParameterService::Close(absl::Duration timeout) {
  const absl::Time deadline = SteadyTime() + timeout;
  options_.exchanges->Close(absl::ZeroDuration());  // All calls end at the same time.
  const bool others_ended = calls_.Close(timeout);
  return options_.exchanges->Close(std::max(deadline - SteadyTime(), absl::ZeroDuration())) && others_ended;
}

grpc::Status ParameterService::Attach(grpc::ServerContext* context, const v1::AttachRequest* request,
                                      v1::AttachResponse* response) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  // No center knows the job's key before the first Attach, so the key alone would let a rank attach another job.
  if (absl::Status status = CheckJobOfCaller(*context, request->sender().job_id()); !status.ok()) {
    return Reply(*context, "Attach", status);
  }
  absl::StatusOr<v1::AttachResponse> attached = options_.store->Attach(options_.clock->Now(), *request);
  if (!attached.ok()) return Reply(*context, "Attach", attached.status());
  *response = *std::move(attached);
  return grpc::Status::OK;
}

grpc::Status ParameterService::RunInitialize(grpc::ServerContext* context,
                                             grpc::ServerReader<grpc::ByteBuffer>* reader) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  const absl::Status status = ReadInitialize(reader, options_, *context);
  // A whole shard has passed through gRPC's buffers. Without malloc_trim the allocator would keep their memory.
  malloc_trim(0);
  return Reply(*context, "Initialize", status);
}

grpc::Status ParameterService::Locate(grpc::ServerContext* context, const v1::LocateRequest* request,
                                      v1::LocateResponse* response) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  *response = options_.direct;
  const auto origin = options_.store->OriginOf(request->sender());
  if (!origin.has_value()) return grpc::Status::OK;
  response->mutable_restored()->set_loaded_unix_us(absl::ToUnixMicros(options_.started));
  response->mutable_restored()->set_snapshot_unix_ms(absl::ToUnixMillis(origin->snapshot));
  response->mutable_restored()->set_sequence(origin->sequence);
  return grpc::Status::OK;
}

grpc::Status ParameterService::Pace(grpc::ServerContext* context, const v1::PaceRequest* request,
                                    v1::PaceResponse* response) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  const v1::Sender& sender = request->sender();
  absl::StatusOr<std::shared_ptr<Shard>> shard = options_.store->Find(sender);
  if (!shard.ok()) return Reply(*context, "Pace", shard.status());
  const Speaker speaker = {sender.group(), sender.rank(), sender.incarnation()};
  absl::StatusOr<Shard::Pace> pace = (*shard)->TellPace(options_.clock->Now(), speaker, request->steps_per_second());
  if (!pace.ok()) return Reply(*context, "Pace", pace.status());
  response->set_next_fragment(pace->next_fragment);
  response->set_fastest_steps_per_second(pace->fastest_steps_per_second);
  response->set_stops(pace->stops);
  return grpc::Status::OK;
}

grpc::Status ParameterService::Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                                    grpc::ServerWriter<v1::PullResponse>* writer) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  if (absl::Status status = CheckJobOfCaller(*context, request->job_id()); !status.ok()) {
    return Reply(*context, "Pull", status);
  }
  return Reply(*context, "Pull", WritePull(request->job_id(), *options_.store, writer));
}

grpc::Status ParameterService::KeepState(grpc::ServerContext* context, grpc::ServerReader<v1::KeepStateRequest>* reader,
                                         v1::KeepStateResponse* /*response*/) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  KeepStateSession session(options_.store);
  v1::KeepStateRequest message;
  while (reader->Read(&message)) {
    if (absl::Status status = session.Receive(message); !status.ok()) return Reply(*context, "KeepState", status);
  }
  // Read returns false for a broken stream as well as for one that the client has ended. IsCancelled tells these apart.
  const absl::Status status =
      context->IsCancelled() ? absl::CancelledError("KeepState was cancelled before its end") : session.Finish();
  return Reply(*context, "KeepState", status);
}

grpc::Status ParameterService::FetchState(grpc::ServerContext* context, const v1::FetchStateRequest* request,
                                          grpc::ServerWriter<v1::FetchStateResponse>* writer) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  const auto send = [writer](const v1::FetchStateResponse& response) {
    return writer->Write(response) ? absl::OkStatus() : absl::CancelledError("the stream of a state broke");
  };
  return Reply(*context, "FetchState", hooke::FetchState(*options_.store, *request, send));
}

grpc::Status ParameterService::Save(grpc::ServerContext* context, const v1::SaveRequest* request,
                                    v1::SaveResponse* /*response*/) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  if (absl::Status status = CheckJobId(request->sender().job_id()); !status.ok()) {
    return Reply(*context, "Save", status);
  }
  // Before the disk is written, because other groups may be waiting.
  if (absl::Status status = NoteEnd(*request); !status.ok()) return Reply(*context, "Save", status);
  return Reply(*context, "Save", options_.store->Save(request->sender()));
}

grpc::Status ParameterService::ReadExchanges(grpc::ServerContext* context, const v1::ReadExchangesRequest* request,
                                             v1::ReadExchangesResponse* response) {
  const OpenCalls::Call call(&calls_, context);
  if (!call.admitted()) return Stopping();
  const std::string& job_id = request->job_id();
  if (absl::Status status = CheckJobId(job_id); !status.ok()) return Reply(*context, "ReadExchanges", status);
  if (absl::Status status = CheckJobOfCaller(*context, job_id); !status.ok()) {
    return Reply(*context, "ReadExchanges", status);
  }
  const auto served = options_.store->ServedOf(job_id);
  // Not logged: a trace asks the servers of a job that has ended long ago, too.
  if (!served.ok()) return {grpc::StatusCode::NOT_FOUND, std::string(served.status().message())};
  AddExchanges((*served)->Read(), *response);
  response->set_machine(options_.machine);
  const std::optional<ClockOffset::Estimate> offset = options_.clock_offset();
  if (!offset.has_value()) return grpc::Status::OK;
  response->mutable_clock()->set_offset_ns(offset->offset);
  response->mutable_clock()->set_error_ns(offset->error);
  return grpc::Status::OK;
}

// Ends the sender's group, if the request says so. If the shard is not there, Save itself says what to do. A shard that
// does not know this start of the group comes from an older snapshot. Then OK is returned, and the group finds that out
// after Save. But if the job is to stop, the error is returned: the group attaches and tries again.
absl::Status ParameterService::NoteEnd(const v1::SaveRequest& request) const {
  const v1::Sender& sender = request.sender();
  if (!request.ends()) return absl::OkStatus();
  const absl::StatusOr<std::shared_ptr<Shard>> shard = options_.store->Find(sender);
  if (!shard.ok()) return absl::OkStatus();
  const Speaker speaker = {sender.group(), sender.rank(), sender.incarnation()};
  absl::Status status = (*shard)->EndGroup(speaker, request.stops());
  return absl::IsNotFound(status) && !request.stops() ? absl::OkStatus() : status;
}

grpc::Status ParameterService::Reply(const grpc::ServerContext& context, absl::string_view call,
                                     const absl::Status& status) const {
  return ReplyTo(context, *options_.logger, call, status);
}

}  // namespace hooke
