#include "worker/report/reporter.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "clocks/steady_time.h"
#include "worker/report/profile_message.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

constexpr size_t kMostQueued = 256;

bool IsInStep(v1::RankProgress::Phase phase) {
  return phase == v1::RankProgress::COMPUTE || phase == v1::RankProgress::COLLECTIVE ||
         phase == v1::RankProgress::EXCHANGE;
}

}  // namespace

Reporter::Reporter(ReporterOptions options)
    : options_(std::move(options)), meter_(options_.clock()), start_(std::move(options_.start)) {
  meter_.Enter(v1::RankProgress::STARTING, options_.clock());
  v1::RankEvent event;
  *event.mutable_hello() = options_.hello;
  Queue(std::move(event));
  thread_ = std::thread([this] { Run(); });
}

Reporter::~Reporter() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    changed_.SignalAll();
    const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; };
    if (!changed_.Await(mutex_, SteadyTime() + options_.close_timeout, ended)) {
      // A sink does not take our events in time, so the rank ends without it.
      for (auto& sink : options_.sinks) sink->Cancel();
    }
  }
  thread_.join();
}

void Reporter::Enter(v1::RankProgress::Phase phase) {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = options_.clock();
  meter_.Enter(phase, now);
  if (!stepped_) start_.Enter(phase, now);
  if (options_.profile != nullptr) options_.profile->Enter({static_cast<uint32_t>(phase), IsInStep(phase), step_});
}

void Reporter::BeginStart(v1::LifeSpan::What what) {
  absl::MutexLock lock(&mutex_);
  start_.Begin(what, options_.clock());
}

void Reporter::SetPlan(const ProgressMeter::Plan& plan) {
  absl::MutexLock lock(&mutex_);
  step_ = plan.step;
  meter_.SetPlan(plan);
}

void Reporter::ReportStep(const StepDone& step) {
  absl::MutexLock lock(&mutex_);
  step_ = step.step;
  const absl::Time now = options_.clock();
  meter_.ReportStep(step, now);
  if (std::exchange(stepped_, true) || options_.hello.rank() != 0) return;
  // People wait for the first step, so it does not wait for the next progress.
  Push(ProgressEvent());
  v1::RankEvent event;
  *event.mutable_begun() = start_.End(now);
  Push(std::move(event));
}

void Reporter::AddExchange(bool ok) {
  absl::MutexLock lock(&mutex_);
  meter_.AddExchange(ok);
}

void Reporter::SetExchanged(uint64_t step) {
  absl::MutexLock lock(&mutex_);
  meter_.SetExchanged(step);
}

void Reporter::SetCenterDistance(double distance) {
  absl::MutexLock lock(&mutex_);
  meter_.SetCenterDistance(distance);
}

void Reporter::AddMissedByOthers() {
  absl::MutexLock lock(&mutex_);
  meter_.AddMissedByOthers();
}

void Reporter::SetServers(size_t servers) {
  absl::MutexLock lock(&mutex_);
  meter_.SetServers(servers);
}

void Reporter::SetAbsent(const std::string& address, std::optional<absl::Time> since) {
  absl::MutexLock lock(&mutex_);
  meter_.SetAbsent(address, since);
}

void Reporter::AddOverlapped(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  meter_.AddOverlapped(time);
}

absl::Status Reporter::SetMetric(absl::string_view name, double value) {
  absl::MutexLock lock(&mutex_);
  return meter_.SetMetric(name, value);
}

void Reporter::Notice(std::string text) {
  v1::RankEvent event;
  event.mutable_notice()->set_text(std::move(text));
  Queue(std::move(event));
}

void Reporter::NoticeSetback(std::string text) {
  v1::RankEvent event;
  event.mutable_notice()->set_text(std::move(text));
  event.mutable_notice()->set_setback(true);
  Queue(std::move(event));
}

void Reporter::Evaluated(const v1::CenterEvaluated& evaluated) {
  v1::RankEvent event;
  *event.mutable_evaluated() = evaluated;
  Queue(std::move(event));
}

void Reporter::Links(const v1::MeasuredLinks& links) {
  v1::RankEvent event;
  *event.mutable_links() = links;
  Queue(std::move(event));
}

void Reporter::Failed(const absl::Status& status) {
  v1::RankEvent event;
  event.mutable_failed()->set_code(static_cast<int32_t>(status.code()));
  event.mutable_failed()->set_message(std::string(status.message()));
  event.mutable_failed()->set_server(WantedServer(status));
  QueueLast(std::move(event));
}

void Reporter::Done(uint64_t step) {
  v1::RankEvent event;
  event.mutable_done()->set_step(step);
  QueueLast(std::move(event));
}

v1::RankProgress Reporter::Progress() const {
  absl::MutexLock lock(&mutex_);
  return meter_.Snapshot(options_.clock());
}

std::string Reporter::LeaveReason() const {
  for (const auto& sink : options_.sinks) {
    if (std::string reason = sink->LeaveReason(); !reason.empty()) return reason;
  }
  return "";
}

void Reporter::QueueLast(v1::RankEvent event) {
  v1::RankEvent progress;
  *progress.mutable_progress() = Progress();
  Queue(std::move(progress));
  if (std::optional<v1::RankEvent> profile = ProfileEvent()) Queue(*std::move(profile));
  Queue(std::move(event));
}

void Reporter::Queue(v1::RankEvent event) {
  absl::MutexLock lock(&mutex_);
  Push(std::move(event));
}

void Reporter::Push(v1::RankEvent event) {
  queue_.push_back(std::move(event));
  changed_.SignalAll();
  if (queue_.size() <= kMostQueued) return;
  auto notice = std::find_if(queue_.begin(), queue_.end(), [](const v1::RankEvent& e) { return e.has_notice(); });
  queue_.erase(notice == queue_.end() ? queue_.begin() : notice);
}

v1::RankEvent Reporter::ProgressEvent() const {
  v1::RankEvent event;
  *event.mutable_progress() = meter_.Snapshot(options_.clock());
  return event;
}

std::optional<v1::RankEvent> Reporter::ProfileEvent() const {
  if (options_.profile == nullptr) return std::nullopt;
  const Profile profile = options_.profile->Snapshot();
  if (profile.collectives.empty()) return std::nullopt;
  v1::RankEvent event;
  *event.mutable_profile() = ToMessage(profile);
  return event;
}

// The loop of the reporter's thread. It waits by SteadyTime; options_.clock is only for the progress and the spans of
// the start.
void Reporter::Run() {
  // People, and `tests/benchmarks/run reports`, find by this name what reports cost.
  pthread_setname_np(pthread_self(), "hooke-reports");
  absl::Time next_progress = SteadyTime() + options_.interval;
  absl::Duration profile_interval = options_.profile_interval;
  absl::Time next_profile = SteadyTime() + profile_interval / 5;
  bool closing = false;
  while (!closing) {
    std::deque<v1::RankEvent> events;
    {
      absl::MutexLock lock(&mutex_);
      auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closing_ || !queue_.empty(); };
      changed_.Await(mutex_, next_progress, wanted);
      events.swap(queue_);
      closing = closing_;
      if (!closing && SteadyTime() >= next_progress) {
        events.push_back(ProgressEvent());
        next_progress = SteadyTime() + options_.interval;
      }
    }
    if (!closing && SteadyTime() >= next_profile) {
      std::optional<v1::RankEvent> profile = ProfileEvent();
      if (profile.has_value()) {
        events.push_back(*std::move(profile));
        next_profile = SteadyTime() + profile_interval;
        profile_interval = std::min(2 * profile_interval, options_.profile_interval_max);
      }
    }
    for (const v1::RankEvent& event : events) {
      for (auto& sink : options_.sinks) sink->Send(event);
    }
  }
  for (auto& sink : options_.sinks) sink->Close(options_.close_timeout / 2);
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  changed_.SignalAll();
}

}  // namespace hooke
