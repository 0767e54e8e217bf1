#include "server/coordinator/heartbeat.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clocks/stop_signal.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/coordinator/instant.h"
#include "server/parameters/parameter_server.h"

namespace hooke {
namespace {

class Beating : public Heartbeat {
 public:
  explicit Beating(HeartbeatOptions options)
      : options_(std::move(options)),
        stub_(v1::Coordinator::NewStub(options_.channel)),
        beater_([this] { Beat(); }),
        sealer_([this] { SealEnded(); }) {}

  ~Beating() override {
    stop_.Notify();
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    beater_.join();
    sealer_.join();
  }

 private:
  void Beat() {
    do {
      BeatOnce();
    } while (!stop_.WaitFor(options_.interval));
  }

  void BeatOnce();
  void Complain(const grpc::Status& status);
  void TellProblem(const std::string& problem);
  void SealEnded();

  const HeartbeatOptions options_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
  StopSignal stop_;

  // Only beater_ uses these.
  bool answered_ = false;
  absl::Duration complained_ = -absl::InfiniteDuration();  // Steady.
  std::string problem_;                                    // The last one that was logged; empty: none.

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> ended_ ABSL_GUARDED_BY(mutex_);  // Jobs to seal; at most those that this server holds.
  // Steady times before which jobs whose seal failed are not sealed again.
  std::map<std::string, absl::Duration> seal_again_at_ ABSL_GUARDED_BY(mutex_);

  std::thread beater_;
  // Sealing has its own thread because it writes to disk. A slow disk must not look like a silent server.
  std::thread sealer_;
};

void Beating::BeatOnce() {
  const ParameterServerStats stats = options_.parameters->Stats();
  v1::ServerHeartbeatRequest request;
  request.set_address(options_.address);
  request.set_server_id(options_.server_id);
  request.set_instance(options_.instance);
  request.set_version(options_.version);
  request.set_center_bytes(stats.center_bytes);
  request.set_disk_centers(stats.disk_centers);
  request.set_disk_bytes(stats.disk_bytes);
  for (const std::string& job : stats.jobs) request.add_jobs(job);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + options_.call_timeout));
  v1::ServerHeartbeatResponse response;
  const grpc::Status status = stub_->ServerHeartbeat(&context, request, &response);
  if (!status.ok()) return Complain(status);
  if (!answered_)
    options_.logger->info("joined the coordinator at {} as server {}", options_.coordinator, options_.address);
  answered_ = true;
  complained_ = -absl::InfiniteDuration();
  TellProblem(response.problem());
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = InstantNow().steady;
  for (const std::string& job : response.ended_jobs()) {
    auto again = seal_again_at_.find(job);
    if (again == seal_again_at_.end() || again->second <= now) ended_.insert(job);
  }
}

void Beating::Complain(const grpc::Status& status) {
  answered_ = false;
  const absl::Duration now = InstantNow().steady;
  if (stop_.HasBeenNotified() || now - complained_ < options_.complain_every) return;
  complained_ = now;
  options_.logger->warn(
      "coordinator {} does not answer ({}): trying again each second; centers held here go on being served",
      options_.coordinator, status.error_message());
}

void Beating::TellProblem(const std::string& problem) {
  if (problem == problem_) return;
  problem_ = problem;
  if (problem.empty()) {
    options_.logger->info("the coordinator finds no fault with this server any more");
  } else {
    options_.logger->warn("the coordinator places nothing on this server, which {}", problem);
  }
}

void Beating::SealEnded() {
  while (true) {
    std::string job;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !ended_.empty(); };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      job = *ended_.begin();
    }
    const absl::Status sealed = options_.parameters->Seal(job);
    if (sealed.ok()) {
      options_.logger->info("job {} has ended: its center is on disk", job);
    } else {
      options_.logger->error("the center of job {} could not be written, trying again in {}: {}", job,
                             absl::FormatDuration(options_.seal_again_after), std::string(sealed.message()));
    }
    // After a failed seal the server still holds the job, so a later heartbeat brings it up again.
    absl::MutexLock lock(&mutex_);
    ended_.erase(job);
    seal_again_at_.erase(job);
    if (!sealed.ok()) seal_again_at_[job] = InstantNow().steady + options_.seal_again_after;
  }
}

}  // namespace

std::unique_ptr<Heartbeat> Heartbeat::Start(HeartbeatOptions options) {
  return std::make_unique<Beating>(std::move(options));
}

}  // namespace hooke
