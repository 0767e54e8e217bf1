#include "wire/calls/exchange_reads.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/parameter_server.grpc.pb.h"
#include "wire/calls/connection_failure.h"
#include "wire/calls/patient_channel.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

struct Call {
  std::unique_ptr<v1::ParameterServer::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ReadExchangesResponse>> reader;
  v1::ReadExchangesResponse response;
  grpc::Status status;
};

absl::StatusOr<v1::ReadExchangesResponse> AnswerOf(Call& call) {
  if (call.status.ok()) return std::move(call.response);
  absl::Status status = FromGrpc(call.status);
  const std::string message(status.message());
  if (!absl::IsUnavailable(status) || !IsConnectionFailure(message)) return status;
  return absl::UnavailableError(absl::StrCat("cannot be reached: ", ConnectionTrouble(message)));
}

}  // namespace

std::vector<ExchangesOfServer> ReadExchanges(const ExchangeReadsOptions& options) {
  v1::ReadExchangesRequest request;
  request.set_job_id(options.job_id);
  // Monotonic, so that it does not move with the machine's clock.
  const gpr_timespec deadline = gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(absl::ToInt64Nanoseconds(options.timeout), GPR_TIMESPAN));
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Call>> calls;
  for (const std::string& server : options.servers) {
    Call& call = *calls.emplace_back(std::make_unique<Call>());
    call.stub = v1::ParameterServer::NewStub(MakeChannel(server, options.token));
    call.context.set_deadline(deadline);
    call.reader = call.stub->AsyncReadExchanges(&call.context, request, &queue);
    call.reader->Finish(&call.response, &call.status, &call);
  }
  void* tag = nullptr;
  bool ok = false;
  // Each call ends once, by its deadline at the latest.
  for (size_t i = 0; i < calls.size(); ++i) queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  std::vector<ExchangesOfServer> servers;
  servers.reserve(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) servers.push_back({options.servers[i], AnswerOf(*calls[i])});
  return servers;
}

}  // namespace hooke
