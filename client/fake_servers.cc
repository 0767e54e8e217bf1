#include "client/fake_servers.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "job/job_state.h"
#include "wire/admission.h"

namespace hooke {
namespace {

grpc::Status NoSuchJob(const std::string& job_id) { return {grpc::NOT_FOUND, absl::StrCat("no job ", job_id)}; }

}  // namespace

FakeListener::FakeListener(grpc::Service& service, int port, const ClusterToken& token) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), ListenCredentials({token, {}}), &port_);
  builder.RegisterService(&service);
  server_ = builder.BuildAndStart();
}

FakeListener::~FakeListener() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

std::string FakeListener::address() const { return absl::StrCat("127.0.0.1:", port_); }

grpc::Status FakeCoordinatorService::Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                                            v1::SubmitResponse* response) {
  absl::MutexLock lock(&mutex);
  submitted.push_back(*request);
  response->set_job_id(absl::StrCat(request->job().name(), "-1"));
  return submit_status;
}

grpc::Status FakeCoordinatorService::ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                                              v1::ListJobsResponse* response) {
  for (const auto& [id, statuses] : jobs) *response->add_jobs() = statuses.back();
  response->set_left_out(jobs_left_out);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                                              grpc::ServerWriter<v1::JobStatus>* writer) {
  std::vector<v1::JobStatus> statuses;
  {
    absl::MutexLock lock(&mutex);
    const auto found = jobs.find(request->job_id());
    if (found == jobs.end()) return NoSuchJob(request->job_id());
    ++watches;
    statuses = found->second;
  }
  for (const v1::JobStatus& status : statuses) writer->Write(status);
  if (HasEnded(statuses.back().state())) return grpc::Status::OK;
  // Stays open and silent until the watcher or the listener ends. The loop is bounded, so that a broken test ends.
  for (int i = 0; i < 3000 && !context->IsCancelled(); ++i) absl::SleepFor(absl::Milliseconds(10));
  return grpc::Status::CANCELLED;
}

grpc::Status FakeCoordinatorService::ReadLog(grpc::ServerContext*, const v1::ReadLogRequest* request,
                                             grpc::ServerWriter<v1::LogChunk>* writer) {
  if (jobs.count(request->job_id()) == 0) return NoSuchJob(request->job_id());
  constexpr size_t kChunk = 10;
  for (size_t offset = request->offset(); offset < log.size(); offset += kChunk) {
    v1::LogChunk chunk;
    chunk.set_text(log.substr(offset, kChunk));
    chunk.set_next_offset(offset + chunk.text().size());
    writer->Write(chunk);
  }
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::ReadProfile(grpc::ServerContext*, const v1::ReadProfileRequest* request,
                                                 grpc::ServerWriter<v1::ReadProfileResponse>* writer) {
  if (jobs.count(request->job_id()) == 0) return NoSuchJob(request->job_id());
  if (profiles.empty()) return {grpc::FAILED_PRECONDITION, "it has no profile"};
  for (v1::ReadProfileResponse profile : profiles) {
    if (!request->trace()) profile.mutable_profile()->clear_events();
    writer->Write(profile);
  }
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::ReadStarts(grpc::ServerContext*, const v1::ReadStartsRequest*,
                                                v1::ReadStartsResponse* response) {
  *response = starts;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::ReadHistory(grpc::ServerContext*, const v1::ReadHistoryRequest* request,
                                                 grpc::ServerWriter<v1::ReadHistoryResponse>* writer) {
  if (jobs.count(request->job_id()) == 0) return NoSuchJob(request->job_id());
  if (history.empty()) return {grpc::FAILED_PRECONDITION, "it has no points"};
  for (const v1::HistoryPoint& point : history) {
    v1::ReadHistoryResponse response;
    *response.add_points() = point;
    writer->Write(response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                                               v1::CancelJobResponse* response) {
  const auto found = jobs.find(request->job_id());
  if (found == jobs.end()) return NoSuchJob(request->job_id());
  *response->mutable_job() = found->second.back();
  response->mutable_job()->set_state(v1::JOB_STATE_CANCELLED);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::ScaleJob(grpc::ServerContext*, const v1::ScaleJobRequest* request,
                                              v1::ScaleJobResponse* response) {
  const auto found = jobs.find(request->job_id());
  if (found == jobs.end()) return NoSuchJob(request->job_id());
  scaled.push_back(*request);
  *response->mutable_job() = found->second.back();
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::ResumeJob(grpc::ServerContext*, const v1::ResumeJobRequest* request,
                                               v1::ResumeJobResponse* response) {
  const auto found = jobs.find(request->job_id());
  if (found == jobs.end()) return NoSuchJob(request->job_id());
  *response->mutable_job() = found->second.back();
  const bool held = response->job().state() == v1::JOB_STATE_HELD;
  response->set_resumed(held ? 1 : 0);
  if (held) response->mutable_job()->set_state(v1::JOB_STATE_QUEUED);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::ForgetJob(grpc::ServerContext*, const v1::ForgetJobRequest* request,
                                               v1::ForgetJobResponse* response) {
  const auto found = jobs.find(request->job_id());
  if (found == jobs.end()) return NoSuchJob(request->job_id());
  *response->mutable_job() = found->second.back();
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::ListNodes(grpc::ServerContext*, const v1::ListNodesRequest* request,
                                               v1::ListNodesResponse* response) {
  for (const v1::NodeStatus& node : nodes) *response->add_nodes() = node;
  if (request->links()) *response->mutable_links() = {links.begin(), links.end()};
  return grpc::Status::OK;
}

grpc::Status FakeCoordinatorService::DrainWorker(grpc::ServerContext*, const v1::DrainWorkerRequest* request,
                                                 v1::DrainWorkerResponse* response) {
  for (v1::NodeStatus& node : nodes) {
    if (node.name() != request->worker()) continue;
    node.set_drain(request->drain());
    *response->mutable_node() = node;
    return grpc::Status::OK;
  }
  return {grpc::NOT_FOUND, absl::StrCat("no worker ", request->worker())};
}

grpc::Status FakeParameterServer::Pull(grpc::ServerContext* context, const v1::PullRequest*,
                                       grpc::ServerWriter<v1::PullResponse>* writer) {
  for (const v1::PullResponse& response : responses) writer->Write(response);
  // The wait is bounded, so that a broken test ends.
  for (int i = 0; falls_silent && i < 3000 && !context->IsCancelled(); ++i) absl::SleepFor(absl::Milliseconds(10));
  return end;
}

v1::JobStatus RunningJob(const std::string& job_id) {
  v1::JobStatus job;
  job.set_job_id(job_id);
  job.set_name("fashion");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_submitted_unix_ms(1'000'000'000'000);
  job.set_started_unix_ms(1'000'000'001'000);
  job.set_first_step_unix_ms(1'000'000'002'000);
  job.set_now_unix_ms(1'000'000'043'000);
  job.mutable_spec()->mutable_model()->set_name("lenet");
  job.mutable_spec()->mutable_train()->set_batch_size(64);
  job.mutable_spec()->mutable_groups()->set_count(2);
  job.mutable_spec()->mutable_groups()->set_ranks(2);
  job.mutable_spec()->mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
  job.mutable_spec()->mutable_averaging()->set_interval(16);
  for (const uint32_t index : {0u, 1u}) {
    v1::GroupStatus* group = job.add_groups();
    group->set_group(index);
    group->set_task(v1::GroupStart::TRAIN);
    group->set_state(v1::GROUP_STATE_RUNNING);
    group->set_worker(absl::StrCat("worker-", index + 1));
    group->set_site("local");
    group->set_incarnation(1);
    v1::RankProgress* progress = group->mutable_progress();
    progress->set_step(528 - 16 * index);
    progress->set_steps_total(1123);
    progress->set_epoch(1.88);
    progress->set_loss(0.3512);
    progress->set_samples_per_s(1843);
    progress->set_phase(v1::RankProgress::COMPUTE);
    progress->set_compute_seconds(8.2);
    progress->set_collective_seconds(1.5);
    progress->set_exchange_seconds(0.3);
  }
  return job;
}

v1::JobStatus SucceededJob(const std::string& job_id) {
  v1::JobStatus job = RunningJob(job_id);
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.set_ended_unix_ms(1'000'000'093'000);
  job.set_now_unix_ms(1'000'000'093'000);
  for (v1::GroupStatus& group : *job.mutable_groups()) {
    group.set_state(v1::GROUP_STATE_FINISHED);
    group.mutable_progress()->set_step(1123);
  }
  job.mutable_center()->set_accuracy(0.9012);
  job.mutable_center()->set_loss(0.2861);
  job.mutable_center()->set_epoch(4);
  job.mutable_center()->set_step(1123);
  job.mutable_center()->set_samples(10000);
  return job;
}

}  // namespace hooke
