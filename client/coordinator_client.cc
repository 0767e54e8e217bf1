#include "client/coordinator_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "job/near_name.h"
#include "wire/calls/connection_failure.h"
#include "wire/calls/patient_channel.h"
#include "wire/grpc_status.h"
#include "wire/random_hex.h"

namespace hooke {
namespace {

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

}  // namespace

CoordinatorClient::CoordinatorClient(std::string address, ClusterToken token,
                                     const std::shared_ptr<grpc::Channel>& channel)
    : address_(std::move(address)), token_(std::move(token)), stub_(v1::Coordinator::NewStub(channel)) {}

absl::StatusOr<std::unique_ptr<CoordinatorClient>> CoordinatorClient::Connect(const std::string& address,
                                                                              absl::Duration timeout,
                                                                              const ClusterToken& token) {
  std::shared_ptr<grpc::Channel> channel = MakeChannel(address, token);
  std::unique_ptr<CoordinatorClient> client(new CoordinatorClient(address, token, channel));
  const auto deadline = absl::ToChronoTime(absl::Now() + timeout);
  grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_TRANSIENT_FAILURE) {
    if (!channel->WaitForStateChange(state, deadline)) {
      return client->Explain(absl::UnavailableError(absl::StrCat("no answer within ", absl::FormatDuration(timeout))));
    }
    state = channel->GetState(/*try_to_connect=*/true);
  }
  if (state == GRPC_CHANNEL_READY) return client;
  // Makes a call, because only a call's error says why the channel cannot connect.
  absl::StatusOr<v1::ListNodesResponse> nodes = client->ListNodes();
  if (!nodes.ok() && nodes.status().code() == absl::StatusCode::kUnavailable) return nodes.status();
  return client;
}

absl::Status CoordinatorClient::Explain(const absl::Status& status) const {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      if (!IsConnectionFailure(status.message())) return status;
      return absl::UnavailableError(absl::StrCat("cannot reach the coordinator at ", address_, ": ",
                                                 ConnectionTrouble(std::string(status.message())),
                                                 "; is hooke-server running there? (--coordinator chooses another)"));
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError(
          absl::StrCat("the coordinator at ", address_, " has not answered within ", absl::FormatDuration(call_limit_),
                       "; it may still do what it was asked. `hooke doctor` looks at it"));
    case absl::StatusCode::kUnimplemented:
      return absl::UnimplementedError(
          absl::StrCat("what listens at ", address_,
                       " is not a coordinator, or of another version (--coordinator chooses another)"));
    case absl::StatusCode::kUnauthenticated:
      return absl::UnauthenticatedError(absl::StrCat("the coordinator at ", address_, ": ", status.message()));
    default:
      return status;
  }
}

absl::Status CoordinatorClient::ExplainAbout(const std::string& job_id, const absl::Status& status) {
  if (!absl::IsNotFound(status)) return Explain(status);
  const absl::StatusOr<v1::ListJobsResponse> jobs = ListJobs();
  if (!jobs.ok()) return status;
  std::string guess;
  std::vector<std::string> ids;
  for (const v1::JobStatus& job : jobs->jobs()) {
    ids.push_back(job.job_id());
    // The user gave the job's name without its number. Guess the newest job of that name.
    if (guess.empty() && job.name() == job_id) guess = job.job_id();
  }
  if (guess.empty()) guess = Nearest(job_id, ids);
  if (guess.empty()) return status;
  return absl::NotFoundError(absl::StrCat(status.message(), " (did you mean \"", guess, "\"?)"));
}

absl::StatusOr<std::string> CoordinatorClient::Submit(const v1::JobSpec& job, const SubmitTimes& times) {
  constexpr int kTries = 5;
  v1::SubmitRequest request;
  request.set_submission_id(RandomHex(4));
  *request.mutable_job() = job;
  request.set_preparing_us(static_cast<uint64_t>(absl::ToInt64Microseconds(times.preparing)));
  request.set_upload_us(static_cast<uint64_t>(absl::ToInt64Microseconds(times.upload)));
  absl::Status last;
  for (int i = 0; i < kTries; ++i) {
    grpc::ClientContext context;
    SetDeadline(context, call_limit_);
    // The first try fails at once if it cannot connect. A retry waits for the coordinator to return.
    context.set_wait_for_ready(i > 0);
    v1::SubmitResponse response;
    last = FromGrpc(stub_->Submit(&context, request, &response));
    if (last.ok()) return response.job_id();
    if (last.code() != absl::StatusCode::kUnavailable) break;
  }
  return Explain(last);
}

absl::StatusOr<v1::ListJobsResponse> CoordinatorClient::ListJobs() {
  grpc::ClientContext context;
  SetDeadline(context, call_limit_);
  v1::ListJobsResponse response;
  const absl::Status status = FromGrpc(stub_->ListJobs(&context, v1::ListJobsRequest(), &response));
  if (!status.ok()) return Explain(status);
  return response;
}

absl::StatusOr<v1::JobStatus> CoordinatorClient::CancelJob(const std::string& job_id) {
  grpc::ClientContext context;
  SetDeadline(context, call_limit_);
  v1::CancelJobRequest request;
  request.set_job_id(job_id);
  v1::CancelJobResponse response;
  const absl::Status status = FromGrpc(stub_->CancelJob(&context, request, &response));
  if (!status.ok()) return ExplainAbout(job_id, status);
  return response.job();
}

absl::StatusOr<v1::JobStatus> CoordinatorClient::ScaleJob(const v1::ScaleJobRequest& scale) {
  grpc::ClientContext context;
  SetDeadline(context, call_limit_);
  v1::ScaleJobResponse response;
  const absl::Status status = FromGrpc(stub_->ScaleJob(&context, scale, &response));
  if (!status.ok()) return ExplainAbout(scale.job_id(), status);
  return response.job();
}

absl::StatusOr<v1::ResumeJobResponse> CoordinatorClient::ResumeJob(const std::string& job_id) {
  grpc::ClientContext context;
  SetDeadline(context, call_limit_);
  v1::ResumeJobRequest request;
  request.set_job_id(job_id);
  v1::ResumeJobResponse response;
  const absl::Status status = FromGrpc(stub_->ResumeJob(&context, request, &response));
  if (!status.ok()) return ExplainAbout(job_id, status);
  return response;
}

absl::StatusOr<v1::JobStatus> CoordinatorClient::ForgetJob(const std::string& job_id) {
  grpc::ClientContext context;
  SetDeadline(context, call_limit_);
  v1::ForgetJobRequest request;
  request.set_job_id(job_id);
  v1::ForgetJobResponse response;
  const absl::Status status = FromGrpc(stub_->ForgetJob(&context, request, &response));
  if (!status.ok()) return ExplainAbout(job_id, status);
  return response.job();
}

absl::StatusOr<v1::ListNodesResponse> CoordinatorClient::ListNodes(bool links) {
  grpc::ClientContext context;
  SetDeadline(context, call_limit_);
  v1::ListNodesRequest request;
  request.set_links(links);
  v1::ListNodesResponse response;
  const absl::Status status = FromGrpc(stub_->ListNodes(&context, request, &response));
  if (!status.ok()) return Explain(status);
  return response;
}

absl::StatusOr<v1::NodeStatus> CoordinatorClient::DrainWorker(const std::string& worker, v1::Drain drain) {
  grpc::ClientContext context;
  SetDeadline(context, call_limit_);
  v1::DrainWorkerRequest request;
  request.set_worker(worker);
  request.set_drain(drain);
  v1::DrainWorkerResponse response;
  const absl::Status status = FromGrpc(stub_->DrainWorker(&context, request, &response));
  if (status.ok()) return response.node();
  if (!absl::IsNotFound(status)) return Explain(status);
  const absl::StatusOr<v1::ListNodesResponse> nodes = ListNodes();
  if (!nodes.ok()) return status;
  std::vector<std::string> names;
  for (const v1::NodeStatus& node : nodes->nodes()) {
    if (node.kind() == v1::NodeStatus::WORKER) names.push_back(node.name());
  }
  const std::string guess = Nearest(worker, names);
  if (guess.empty()) return status;
  return absl::NotFoundError(absl::StrCat(status.message(), " (did you mean \"", guess, "\"?)"));
}

absl::StatusOr<v1::JobStatus> CoordinatorClient::GetJob(const std::string& job_id) {
  // The first message of WatchJob is the job's current status.
  absl::StatusOr<v1::JobStatus> job = WatchJob(job_id)->Next(call_limit_);
  if (job.ok()) return job;
  if (job.status().code() == absl::StatusCode::kOutOfRange) {
    return absl::InternalError(absl::StrCat("the coordinator at ", address_, " said nothing about job ", job_id,
                                            "; try again, and if that repeats, see its log"));
  }
  return ExplainAbout(job_id, job.status());
}

absl::StatusOr<std::vector<v1::ReadProfileResponse>> CoordinatorClient::ReadProfile(const std::string& job_id,
                                                                                    bool trace) {
  v1::ReadProfileRequest request;
  request.set_job_id(job_id);
  request.set_trace(trace);
  TimedReader<v1::ReadProfileResponse> reader([&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return stub_->PrepareAsyncReadProfile(context, request, queue);
  });
  std::vector<v1::ReadProfileResponse> ranks;
  while (true) {
    absl::StatusOr<v1::ReadProfileResponse> rank = reader.Next(call_limit_);
    if (rank.ok()) {
      ranks.push_back(*std::move(rank));
    } else if (!absl::IsOutOfRange(rank.status())) {
      return ExplainAbout(job_id, rank.status());
    } else if (ranks.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", job_id, " has no profile any more; `hooke jobs` shows whether it is still known"));
    } else {
      return ranks;
    }
  }
}

absl::StatusOr<v1::ReadStartsResponse> CoordinatorClient::ReadStarts(const std::string& job_id) {
  v1::ReadStartsRequest request;
  request.set_job_id(job_id);
  grpc::ClientContext context;
  SetDeadline(context, call_limit_);
  v1::ReadStartsResponse response;
  const absl::Status status = FromGrpc(stub_->ReadStarts(&context, request, &response));
  if (!status.ok()) return ExplainAbout(job_id, status);
  return response;
}

absl::StatusOr<std::vector<v1::HistoryPoint>> CoordinatorClient::ReadHistory(const std::string& job_id) {
  v1::ReadHistoryRequest request;
  request.set_job_id(job_id);
  TimedReader<v1::ReadHistoryResponse> reader([&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return stub_->PrepareAsyncReadHistory(context, request, queue);
  });
  std::vector<v1::HistoryPoint> points;
  while (true) {
    const absl::StatusOr<v1::ReadHistoryResponse> some = reader.Next(call_limit_);
    if (some.ok()) {
      points.insert(points.end(), some->points().begin(), some->points().end());
    } else if (absl::IsUnimplemented(some.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat("the coordinator at ", address_, " keeps no histories of jobs: start a newer hooke-server"));
    } else if (!absl::IsOutOfRange(some.status())) {
      return ExplainAbout(job_id, some.status());
    } else if (points.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("job ", job_id, " has no points in its history"));
    } else {
      return points;
    }
  }
}

std::unique_ptr<TimedReader<v1::JobStatus>> CoordinatorClient::WatchJob(const std::string& job_id) {
  v1::WatchJobRequest request;
  request.set_job_id(job_id);
  const auto stub = v1::Coordinator::NewStub(MakeChannel(address_, token_));
  return std::make_unique<TimedReader<v1::JobStatus>>([&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return stub->PrepareAsyncWatchJob(context, request, queue);
  });
}

std::unique_ptr<TimedReader<v1::LogChunk>> CoordinatorClient::ReadLog(const v1::ReadLogRequest& request) {
  const auto stub = v1::Coordinator::NewStub(MakeChannel(address_, token_));
  return std::make_unique<TimedReader<v1::LogChunk>>([&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return stub->PrepareAsyncReadLog(context, request, queue);
  });
}

}  // namespace hooke
