#include "wire/calls/center_pull.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "proto/parameter_server.grpc.pb.h"
#include "wire/calls/connection_failure.h"
#include "wire/calls/patient_channel.h"
#include "wire/timed_reader.h"

namespace hooke {
namespace {

// `stopped` is asked this often.
constexpr absl::Duration kPoll = absl::Milliseconds(100);

}  // namespace

struct CenterPull::Call {
  Call(const std::string& address, const ClusterToken& token, const v1::PullRequest& request)
      : stub(v1::ParameterServer::NewStub(MakeChannel(address, token))),
        reader([&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          return stub->PrepareAsyncPull(context, request, queue);
        }) {}

  const std::unique_ptr<v1::ParameterServer::Stub> stub;
  TimedReader<v1::PullResponse> reader;
};

CenterPull::CenterPull(CenterPullOptions options) : options_(std::move(options)) {
  v1::PullRequest request;
  request.set_job_id(options_.job_id);
  for (const std::string& address : options_.servers) {
    calls_.push_back(std::make_unique<Call>(address, options_.token, request));
  }
}

CenterPull::~CenterPull() = default;

absl::StatusOr<std::optional<v1::PullResponse>> CenterPull::Next(int shard) {
  const auto index = static_cast<size_t>(shard);
  if (calls_[index] == nullptr) return std::nullopt;
  const absl::Time deadline = SteadyTime() + options_.silence;
  while (true) {
    if (options_.stopped && options_.stopped()) return absl::CancelledError("stopped");
    absl::StatusOr<v1::PullResponse> response = calls_[index]->reader.Next(std::min(kPoll, deadline - SteadyTime()));
    if (response.ok()) return *std::move(response);
    if (absl::IsDeadlineExceeded(response.status()) && SteadyTime() < deadline) continue;
    calls_[index] = nullptr;
    if (absl::IsOutOfRange(response.status())) return std::nullopt;
    return Explain(options_.servers[index], response.status());
  }
}

absl::Status CenterPull::Explain(const std::string& address, const absl::Status& status) const {
  const std::string message(status.message());
  const std::string later = absl::StrCat("; it holds part of job ", options_.job_id, ": try again when it is back");
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return absl::UnavailableError(absl::StrCat("server ", address, " has not answered for ",
                                                 absl::FormatDuration(options_.silence), ", it is away or busy",
                                                 later));
    case absl::StatusCode::kUnavailable:
      if (!IsConnectionFailure(message)) break;
      return absl::UnavailableError(
          absl::StrCat("cannot reach server ", address, ": ", ConnectionTrouble(message), later));
    case absl::StatusCode::kFailedPrecondition:  // The server's message says what to do, so nothing is added.
      return absl::FailedPreconditionError(absl::StrCat("server ", address, ": ", message));
    // We did not cancel the call. A server that shuts down cuts its calls with this code.
    case absl::StatusCode::kCancelled:
      return absl::AbortedError(absl::StrCat("server ", address, " has cut the call; try again"));
    default:
      break;
  }
  return absl::Status(status.code(), absl::StrCat("server ", address, ": ", message,
                                                  "; try again, and if that repeats, see the log of that server"));
}

}  // namespace hooke
