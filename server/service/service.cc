#include "server/service/service.h"

#include <utility>

#include "job/job_state.h"
#include "server/service/to_grpc.h"

namespace hooke {
namespace {

constexpr absl::Duration kWatchAtLeastEvery = absl::Seconds(1);
constexpr absl::Duration kWatchAtMostEvery = absl::Milliseconds(200);
constexpr absl::Duration kFollowEvery = absl::Milliseconds(200);
constexpr uint64_t kLogChunkBytes = 256 << 10;
constexpr int kHistoryPointsMax = 4096;    // Of one message, as the proto file says.
constexpr size_t kListBytesMax = 3 << 20;  // By default gRPC clients accept messages of up to 4 MiB.

grpc::Status Stopping() { return {grpc::StatusCode::UNAVAILABLE, "the coordinator is stopping: try again"}; }

}  // namespace

CoordinatorService::CoordinatorService(CoordinatorServiceOptions options)
    : options_(std::move(options)),
      coordinator_(*options_.coordinator),
      workers_(coordinator_, options_.clock),
      files_({options_.files, options_.clock, options_.upload_still_max}, coordinator_),
      ticker_([this] { TickUntilStop(); }) {}

void CoordinatorService::AddTo(grpc::ServerBuilder& builder) {
  workers_.AddTo(builder);
  builder.RegisterService(this);
}

grpc::Status CoordinatorService::Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                                        v1::SubmitResponse* response) {
  if (absl::Status files = files_.CheckJob(request->job()); !files.ok()) return ToGrpc(files);
  absl::StatusOr<std::string> job_id = coordinator_.Submit(*request, options_.clock());
  if (job_id.ok()) response->set_job_id(*job_id);
  return ToGrpc(job_id.status());
}

grpc::Status CoordinatorService::FindMissingFiles(grpc::ServerContext*, const v1::FindMissingFilesRequest* request,
                                                  v1::FindMissingFilesResponse* response) {
  return ToGrpc(files_.FindMissing(*request, *response));
}

grpc::Status CoordinatorService::UploadFiles(grpc::ServerContext* context, grpc::ServerReader<v1::FileChunk>* reader,
                                             v1::UploadFilesResponse* response) {
  return ToGrpc(files_.Upload(*context, *reader, *response));
}

grpc::Status CoordinatorService::FetchFiles(grpc::ServerContext*, const v1::FetchFilesRequest* request,
                                            grpc::ServerWriter<v1::FileChunk>* writer) {
  return ToGrpc(files_.Fetch(*request, *writer));
}

grpc::Status CoordinatorService::ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                                          v1::ListJobsResponse* response) {
  JobList list = coordinator_.List(kListBytesMax, options_.clock());
  for (v1::JobStatus& job : list.jobs) *response->add_jobs() = std::move(job);
  response->set_left_out(static_cast<uint32_t>(list.left_out));
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                                          grpc::ServerWriter<v1::JobStatus>* writer) {
  uint64_t seen = 0;
  while (!context->IsCancelled() && !stop_.HasBeenNotified()) {
    absl::StatusOr<v1::JobStatus> status = coordinator_.Status(request->job_id(), options_.clock());
    if (!status.ok()) return ToGrpc(status.status());
    if (!writer->Write(*status)) return grpc::Status::CANCELLED;
    if (HasEnded(status->state())) return grpc::Status::OK;
    // Each watcher gets a busy job's state at most five times a second.
    stop_.WaitFor(kWatchAtMostEvery);
    seen = coordinator_.WaitForChange(request->job_id(), seen, kWatchAtLeastEvery);
  }
  return context->IsCancelled() ? grpc::Status::CANCELLED : Stopping();
}

grpc::Status CoordinatorService::ReadLog(grpc::ServerContext* context, const v1::ReadLogRequest* request,
                                         grpc::ServerWriter<v1::LogChunk>* writer) {
  uint64_t offset = request->offset();
  absl::Duration spoke = options_.clock().steady;
  while (!context->IsCancelled() && !stop_.HasBeenNotified()) {
    // Ask first, then read. In the other order a last line that was written in between would be missed.
    const bool last = !request->follow() || coordinator_.LogIsComplete(request->job_id());
    absl::StatusOr<LogText> text = coordinator_.ReadLog(request->job_id(), offset, kLogChunkBytes);
    if (!text.ok()) return ToGrpc(text.status());
    offset = text->next_offset;
    const absl::Duration now = options_.clock().steady;
    if (text->text.empty()) {
      if (last) return grpc::Status::OK;
      if (now - spoke < options_.log_sign_of_life) {
        stop_.WaitFor(kFollowEvery);
        continue;
      }
    }
    spoke = now;
    v1::LogChunk chunk;
    chunk.set_text(std::move(text->text));
    chunk.set_next_offset(offset);
    if (!writer->Write(chunk)) return grpc::Status::CANCELLED;
  }
  return context->IsCancelled() ? grpc::Status::CANCELLED : Stopping();
}

grpc::Status CoordinatorService::ReadProfile(grpc::ServerContext* context, const v1::ReadProfileRequest* request,
                                             grpc::ServerWriter<v1::ReadProfileResponse>* writer) {
  absl::StatusOr<std::vector<ProfileKey>> keys = coordinator_.ListProfiles(request->job_id());
  if (!keys.ok()) return ToGrpc(keys.status());
  for (const ProfileKey& key : *keys) {
    absl::StatusOr<v1::RankProfile> profile = coordinator_.ReadProfile(key);
    if (absl::IsNotFound(profile.status())) continue;  // It was removed after ListProfiles, or cut short.
    if (!profile.ok()) return ToGrpc(profile.status());
    v1::ReadProfileResponse response;
    response.set_group(key.group);
    response.set_rank(key.rank);
    *response.mutable_profile() = *std::move(profile);
    if (!request->trace()) response.mutable_profile()->clear_events();
    if (context->IsCancelled() || !writer->Write(response)) return grpc::Status::CANCELLED;
  }
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::ReadStarts(grpc::ServerContext*, const v1::ReadStartsRequest* request,
                                            v1::ReadStartsResponse* response) {
  absl::StatusOr<v1::ReadStartsResponse> starts = coordinator_.Starts(request->job_id());
  if (!starts.ok()) return ToGrpc(starts.status());
  *response = *std::move(starts);
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::ReadHistory(grpc::ServerContext* context, const v1::ReadHistoryRequest* request,
                                             grpc::ServerWriter<v1::ReadHistoryResponse>* writer) {
  const absl::StatusOr<std::vector<v1::HistoryPoint>> points = coordinator_.ReadHistory(request->job_id());
  if (!points.ok()) return ToGrpc(points.status());
  v1::ReadHistoryResponse response;
  for (size_t i = 0; i < points->size(); ++i) {
    *response.add_points() = (*points)[i];
    if (response.points_size() < kHistoryPointsMax && i + 1 < points->size()) continue;
    if (context->IsCancelled() || !writer->Write(response)) return grpc::Status::CANCELLED;
    response.Clear();
  }
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                                           v1::CancelJobResponse* response) {
  absl::StatusOr<v1::JobStatus> job = coordinator_.Cancel(request->job_id(), options_.clock());
  if (!job.ok()) return ToGrpc(job.status());
  *response->mutable_job() = *std::move(job);
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::ScaleJob(grpc::ServerContext*, const v1::ScaleJobRequest* request,
                                          v1::ScaleJobResponse* response) {
  absl::StatusOr<v1::JobStatus> job = coordinator_.Scale(*request, options_.clock());
  if (!job.ok()) return ToGrpc(job.status());
  *response->mutable_job() = *std::move(job);
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::ResumeJob(grpc::ServerContext*, const v1::ResumeJobRequest* request,
                                           v1::ResumeJobResponse* response) {
  absl::StatusOr<Coordinator::Resumed> resumed = coordinator_.Resume(request->job_id(), options_.clock());
  if (!resumed.ok()) return ToGrpc(resumed.status());
  *response->mutable_job() = std::move(resumed->job);
  response->set_resumed(resumed->groups);
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::ForgetJob(grpc::ServerContext*, const v1::ForgetJobRequest* request,
                                           v1::ForgetJobResponse* response) {
  absl::StatusOr<v1::JobStatus> job = coordinator_.Forget(request->job_id(), options_.clock());
  if (!job.ok()) return ToGrpc(job.status());
  *response->mutable_job() = *std::move(job);
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::ListNodes(grpc::ServerContext*, const v1::ListNodesRequest* request,
                                           v1::ListNodesResponse* response) {
  for (v1::NodeStatus& node : coordinator_.Nodes(options_.clock())) *response->add_nodes() = std::move(node);
  if (!request->links()) return grpc::Status::OK;
  for (v1::NodeLink& link : coordinator_.Links()) *response->add_links() = std::move(link);
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::DrainWorker(grpc::ServerContext*, const v1::DrainWorkerRequest* request,
                                             v1::DrainWorkerResponse* response) {
  absl::StatusOr<v1::NodeStatus> node = coordinator_.Drain(request->worker(), request->drain(), options_.clock());
  if (!node.ok()) return ToGrpc(node.status());
  *response->mutable_node() = *std::move(node);
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::ServerHeartbeat(grpc::ServerContext*, const v1::ServerHeartbeatRequest* request,
                                                 v1::ServerHeartbeatResponse* response) {
  absl::StatusOr<v1::ServerHeartbeatResponse> answer = coordinator_.ServerHeartbeat(*request, options_.clock());
  if (!answer.ok()) return ToGrpc(answer.status());
  *response = *std::move(answer);
  response->set_now_unix_ns(static_cast<uint64_t>(absl::ToUnixNanos(options_.clock().wall)));
  return grpc::Status::OK;
}

grpc::Status CoordinatorService::SiteHeartbeat(grpc::ServerContext*, const v1::SiteHeartbeatRequest* request,
                                               v1::SiteHeartbeatResponse* response) {
  absl::StatusOr<v1::SiteHeartbeatResponse> answer = coordinator_.SiteHeartbeat(*request, options_.clock());
  if (!answer.ok()) return ToGrpc(answer.status());
  *response = *std::move(answer);
  return grpc::Status::OK;
}

void CoordinatorService::TickUntilStop() {
  while (!stop_.WaitFor(options_.tick)) {
    coordinator_.Tick(options_.clock());
    for (const ServerDial& dial : coordinator_.TakeDials()) {
      options_.dial_back->Dial(dial.address, [this, dial](const DialAnswer& answer) {
        coordinator_.ServerDialed(dial, answer, options_.clock());
      });
    }
  }
}

void CoordinatorService::Stop() {
  std::call_once(stop_once_, [this] {
    stop_.Notify();
    files_.Stop();
    coordinator_.Stop();
    ticker_.join();
    options_.dial_back->Stop();
  });
}

}  // namespace hooke
