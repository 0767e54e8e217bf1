#include "server/heartbeat/heartbeat.h"

#include <spdlog/spdlog.h>

#include "absl/time/clock.h"
#include "clocks/instant.h"
#include "clocks/steady_time.h"
#include "server/parameters/parameter_server.h"

namespace hooke {
namespace {

constexpr int kDiskJobsMax = 100000;  // The coordinator accepts no longer list.

}  // namespace

Heartbeat::Heartbeat(HeartbeatOptions options)
    : options_(std::move(options)),
      stub_(v1::Coordinator::NewStub(options_.channel)),
      beater_([this] { Beat(); }),
      worker_([this] { ObeyOrders(); }) {}

Heartbeat::~Heartbeat() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    woken_.SignalAll();
  }
  beater_.join();
  worker_.join();
}

void Heartbeat::Beat() {
  do {
    BeatOnce();
  } while (AwaitNextBeat());
}

bool Heartbeat::AwaitNextBeat() {
  const absl::Time until = SteadyTime() + options_.interval;
  absl::MutexLock lock(&mutex_);
  while (!stopping_ && !hurries_ && SteadyTime() < until) woken_.WaitUntil(mutex_, until);
  hurries_ = false;
  return !stopping_;
}

void Heartbeat::BeatOnce() {
  const ParameterServerStats stats = options_.parameters->Stats();
  v1::ServerHeartbeatRequest request;
  request.set_address(options_.address);
  request.set_server_id(options_.server_id);
  request.set_instance(options_.instance);
  request.set_version(options_.version);
  request.set_center_bytes(stats.center_bytes);
  request.set_disk_centers(stats.disk_centers);
  request.set_disk_bytes(stats.disk_bytes);
  request.set_cores(cores_.Add(SteadyTime(), ProcessCpuTime()));
  const ParameterFigures figures = options_.parameters->Figures();
  *request.mutable_exchanges() = exchanges_.Add(SteadyTime(), figures);
  request.set_snapshot_age_seconds(OldestSnapshotSeconds(figures));
  for (const std::string& job : stats.jobs) request.add_jobs(job);
  ListDiskJobs(stats, request);
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [job, closed] : closed_) *request.add_closed() = closed;
  }
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + options_.call_timeout));
  v1::ServerHeartbeatResponse response;
  const int64_t sent = absl::ToUnixNanos(SteadyTime());
  const grpc::Status status = stub_->ServerHeartbeat(&context, request, &response);
  const int64_t received = absl::ToUnixNanos(SteadyTime());
  if (!status.ok()) return Complain(status);
  if (response.now_unix_ns() > 0) {
    options_.parameters->MeasureClock({sent, static_cast<int64_t>(response.now_unix_ns()), received});
  }
  if (!answered_)
    options_.logger->info("joined the coordinator at {} as server {}", options_.coordinator, options_.address);
  answered_ = true;
  refused_ = false;
  complained_ = -absl::InfiniteDuration();
  TellProblem(response.problem());
  ++beats_since_listed_;
  if (request.lists_disk_jobs()) {
    listed_ = stats.disk_jobs;
    beats_since_listed_ = 0;
  }
  absl::MutexLock lock(&mutex_);
  TakeGenerationEnds(response);
  for (const std::string& job : response.ended_jobs()) {
    if (MayTry(job)) ended_.insert(job);
  }
  for (const v1::ForgottenJob& job : response.forgotten_jobs()) {
    if (MayTry(job.job_id())) forgotten_[job.job_id()] = job.job_key();
  }
}

// A generation that the response does not name any more needs no further answer. One that it names, and that has an
// answer in `closed_`, needs no new work: the next heartbeat carries that answer.
void Heartbeat::TakeGenerationEnds(const v1::ServerHeartbeatResponse& response) {
  std::map<std::string, v1::GenerationEnd> named;
  for (const v1::GenerationEnd& end : response.closing()) named[end.job_id()] = end;
  const auto drop = [&named](auto& of_jobs) {
    for (auto it = of_jobs.begin(); it != of_jobs.end();) {
      it = named.count(it->first) == 0 ? of_jobs.erase(it) : std::next(it);
    }
  };
  drop(generation_ends_);
  drop(closed_);
  drop(end_failures_);
  for (auto& [job, end] : named) {
    const auto answer = closed_.find(job);
    if (answer != closed_.end() && answer->second.incarnation() == end.incarnation()) continue;
    generation_ends_[job] = end;
  }
}

void Heartbeat::ListDiskJobs(const ParameterServerStats& stats, v1::ServerHeartbeatRequest& request) const {
  // After a failed heartbeat the coordinator may be another process, which does not have the list.
  if (answered_ && listed_ == stats.disk_jobs && beats_since_listed_ < options_.disk_jobs_every) return;
  request.set_lists_disk_jobs(true);
  for (const auto& [job_id, bytes] : stats.disk_jobs) {
    if (request.disk_jobs_size() == kDiskJobsMax) break;
    v1::DiskJob* job = request.add_disk_jobs();
    job->set_job_id(job_id);
    job->set_bytes(bytes);
  }
}

bool Heartbeat::MayTry(const std::string& job) const {
  const auto again = again_at_.find(job);
  return again == again_at_.end() || again->second <= InstantNow().steady;
}

void Heartbeat::Complain(const grpc::Status& status) {
  answered_ = false;
  const bool refused = status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
  if (refused && refused_) return;
  const absl::Duration now = InstantNow().steady;
  if (refused) {
    refused_ = true;
    complained_ = now;
    return options_.logger->error("coordinator {} refuses this server: {}; trying again each second",
                                  options_.coordinator, status.error_message());
  }
  absl::MutexLock lock(&mutex_);
  if (stopping_ || now - complained_ < options_.complain_every) return;
  complained_ = now;
  options_.logger->warn(
      "coordinator {} does not answer ({}): trying again each second; centers held here go on being served",
      options_.coordinator, status.error_message());
}

void Heartbeat::TellProblem(const std::string& problem) {
  if (problem == problem_) return;
  problem_ = problem;
  if (problem.empty()) {
    options_.logger->info("the coordinator finds no fault with this server any more");
  } else {
    options_.logger->warn("the coordinator places nothing on this server, which {}", problem);
  }
}

void Heartbeat::ObeyOrders() {
  while (true) {
    std::optional<v1::GenerationEnd> end;
    std::string job;
    std::optional<std::string> key;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !generation_ends_.empty() || !ended_.empty() || !forgotten_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      if (!generation_ends_.empty()) {  // First, because a job's groups wait for it.
        end = generation_ends_.begin()->second;
      } else if (forgotten_.empty()) {
        job = *ended_.begin();
      } else {
        job = forgotten_.begin()->first;
        key = forgotten_.begin()->second;
      }
    }
    if (end.has_value()) {
      EndGeneration(*end);
    } else {
      SealOrForget(job, key);
    }
  }
}

void Heartbeat::EndGeneration(const v1::GenerationEnd& end) {
  const auto reached = options_.parameters->EndGeneration(end.job_id(), end.job_key(), end.incarnation());
  absl::MutexLock lock(&mutex_);
  generation_ends_.erase(end.job_id());  // After a failure the next response names it again.
  if (!reached.ok()) {
    std::string text(reached.status().message());
    if (std::exchange(end_failures_[end.job_id()], text) == text) return;
    return options_.logger->error(
        "the number of groups of job {} changes, and this server cannot say how far they had come, trying again: {}",
        end.job_id(), text);
  }
  v1::ClosedGeneration& closed = closed_[end.job_id()];
  closed.set_job_id(end.job_id());
  closed.set_incarnation(end.incarnation());
  closed.clear_groups();
  for (size_t i = 0; i < reached->size(); ++i) {
    v1::ClosedGroup& group = *closed.add_groups();
    group.set_group(static_cast<uint32_t>(i));
    group.set_incarnation((*reached)[i].incarnation);
    group.set_step((*reached)[i].step);
  }
  end_failures_.erase(end.job_id());
  hurries_ = true;
  woken_.SignalAll();
}

void Heartbeat::SealOrForget(const std::string& job, const std::optional<std::string>& key) {
  const absl::Status status = key.has_value() ? Forget(job, *key) : Seal(job);
  // The server still holds a job that it could not seal or free, so a later heartbeat brings it up again.
  absl::MutexLock lock(&mutex_);
  if (key.has_value()) {
    forgotten_.erase(job);
  } else {
    ended_.erase(job);
  }
  again_at_.erase(job);
  if (status.ok()) return;
  // FAILED_PRECONDITION means that the shard has another job's key. That does not change, so it is not tried again.
  const bool never = absl::IsFailedPrecondition(status);
  again_at_[job] = never ? absl::InfiniteDuration() : InstantNow().steady + options_.seal_again_after;
}

absl::Status Heartbeat::Seal(const std::string& job) {
  absl::Status sealed = options_.parameters->Seal(job);
  if (sealed.ok()) {
    options_.logger->info("job {} has ended: its center is on disk", job);
  } else {
    options_.logger->error("the center of job {} could not be written, trying again in {}: {}", job,
                           absl::FormatDuration(options_.seal_again_after), std::string(sealed.message()));
  }
  // Every failure of Seal may be temporary. So it becomes UNAVAILABLE, after which the caller tries the job again.
  return sealed.ok() ? sealed : absl::UnavailableError(sealed.message());
}

absl::Status Heartbeat::Forget(const std::string& job, const std::string& key) {
  absl::Status freed = options_.parameters->Forget(job, key);
  if (freed.ok()) {
    options_.logger->info("job {} was forgotten: its shard here is freed", job);
  } else if (absl::IsFailedPrecondition(freed)) {
    options_.logger->error("job {} was forgotten, but {}", job, std::string(freed.message()));
  } else {
    options_.logger->error("the shard of job {}, which was forgotten, could not be freed, trying again in {}: {}", job,
                           absl::FormatDuration(options_.seal_again_after), std::string(freed.message()));
  }
  return freed;
}

}  // namespace hooke
