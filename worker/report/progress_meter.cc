#include "worker/report/progress_meter.h"

#include <algorithm>
#include <limits>

#include "job/metric.h"

namespace hooke {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(1);
// Most steps from which the rate is computed. Very short steps then cover only a part of the window, which is enough.
constexpr size_t kMostSteps = 4096;

}  // namespace

void ProgressMeter::Enter(v1::RankProgress::Phase phase, absl::Time now) {
  const absl::Duration spent = now - phase_since_;
  switch (progress_.phase()) {
    case v1::RankProgress::COMPUTE:
      compute_ += spent;
      break;
    case v1::RankProgress::COLLECTIVE:
      collective_ += spent;
      break;
    case v1::RankProgress::EXCHANGE:
      exchange_ += spent;
      break;
    case v1::RankProgress::EVALUATING:
      for (Timed& step : recent_) step.at += spent;
      break;
    default:
      break;
  }
  progress_.set_phase(phase);
  phase_since_ = now;
}

void ProgressMeter::SetPlan(const Plan& plan) {
  progress_.set_step(plan.step);
  progress_.set_steps_total(plan.steps_total);
  progress_.set_epoch(plan.epoch);
  progress_.set_exchanged_step(plan.step);
}

void ProgressMeter::ReportStep(const StepDone& step, absl::Time now) {
  progress_.set_step(step.step);
  progress_.set_epoch(step.epoch);
  recent_.push_back({now, step.samples, step.loss});
  while (recent_.size() > 2 && (now - recent_[1].at >= kWindow || recent_.size() > kMostSteps)) recent_.pop_front();
}

void ProgressMeter::AddExchange(bool ok) {
  progress_.set_exchanges(progress_.exchanges() + 1);
  if (!ok) progress_.set_exchange_failures(progress_.exchange_failures() + 1);
}

void ProgressMeter::AddMissedByOthers() { progress_.set_exchange_failures(progress_.exchange_failures() + 1); }

void ProgressMeter::SetAbsent(const std::string& address, std::optional<absl::Time> since) {
  if (since.has_value()) {
    absent_[address] = *since;
  } else {
    absent_.erase(address);
  }
}

absl::Status ProgressMeter::SetMetric(absl::string_view name, double value) {
  return hooke::SetMetric(name, value, *progress_.mutable_metrics());
}

v1::RankProgress ProgressMeter::Snapshot(absl::Time now) const {
  ProgressMeter current = *this;
  current.Enter(progress_.phase(), now);  // Adds the time of the phase that is still going on.
  v1::RankProgress progress = current.progress_;
  if (progress.phase() == v1::RankProgress::PHASE_UNSPECIFIED) progress.set_phase(v1::RankProgress::STARTING);
  progress.set_phase_seconds(absl::ToDoubleSeconds(now - phase_since_));
  progress.set_compute_seconds(absl::ToDoubleSeconds(current.compute_));
  progress.set_collective_seconds(absl::ToDoubleSeconds(current.collective_));
  progress.set_exchange_seconds(absl::ToDoubleSeconds(current.exchange_));
  progress.set_overlapped_seconds(absl::ToDoubleSeconds(overlapped_));
  for (const auto& [address, since] : absent_) {
    v1::AbsentServer* server = progress.add_absent_servers();
    server->set_address(address);
    server->set_since_unix_ms(absl::ToUnixMillis(since));
  }
  progress.set_loss(std::numeric_limits<double>::quiet_NaN());
  const std::deque<Timed>& recent = current.recent_;
  if (recent.empty()) return progress;

  double loss = 0;
  for (const Timed& step : recent) loss += step.loss;
  progress.set_loss(loss / static_cast<double>(recent.size()));
  // The window begins at the end of the first step, so that step's samples do not count. While no step ends, the window
  // grows and the rate falls.
  uint64_t samples = 0;
  for (size_t i = 1; i < recent.size(); ++i) samples += recent[i].samples;
  const absl::Time end = now - recent.back().at > kWindow ? now : recent.back().at;
  const double seconds = absl::ToDoubleSeconds(end - recent.front().at);
  if (seconds > 0) progress.set_samples_per_s(static_cast<double>(samples) / seconds);
  return progress;
}

}  // namespace hooke
