#include "worker/exchange/exchange_planner.h"

#include <cmath>
#include <utility>

#include "algorithms/pace.h"
#include "clocks/steady_time.h"

namespace hooke {
namespace {

// Indices of the statistics.
constexpr size_t kDue = 0;   // 1 if an exchange is due, otherwise 0.
constexpr size_t kTurn = 1;  // The next fragment.

}  // namespace

ExchangePlanner::ExchangePlanner(ExchangePlannerOptions options, const Group* group, const CenterClient* center)
    : options_(std::move(options)),
      group_(group),
      center_(center),
      last_time_(options_.clock()),
      last_step_(options_.first_step),
      interval_(options_.rhythm.interval) {}

void ExchangePlanner::NoteStepTime(absl::Duration took) {
  steps_ += 1;
  busy_ += took;
}

bool ExchangePlanner::Due(uint64_t step) const {
  return ByTime() ? options_.clock() - last_time_ >= options_.interval_time : step >= last_step_ + interval_;
}

void ExchangePlanner::Propose(const Moment& moment, absl::Span<float> statistics) {
  statistics[kDue] = statistics[kTurn] = 0;
  if (group_->rank() != 0) return;
  ExchangeMoment next = {moment.step, moment.in_flight_since};
  if (Decides()) next.due = Due(moment.step);
  const ExchangePlan plan = PlanExchange(options_.rhythm, next);
  const bool asks = plan.begins && moment.step < options_.rhythm.steps_total;
  if (asks && (options_.adapts || (InTurns() && plan.fragment.parts > 1))) Ask();
  // The collective averages over the ranks and the others contribute 0. So rank 0 contributes n times its value.
  const float ranks = static_cast<float>(group_->size());
  if (next.due.value_or(false)) statistics[kDue] = ranks;
  statistics[kTurn] = ranks * static_cast<float>(next_turn_ % options_.rhythm.fragments);
}

// Asks the first server for the pace of the fastest group and for the next fragment. If it does not answer, the group
// keeps its interval and turn; the exchange itself reports the failure.
void ExchangePlanner::Ask() {
  if (options_.skips_first_server && options_.skips_first_server()) return;
  const double seconds = absl::ToDoubleSeconds(busy_);
  const double own = options_.adapts && seconds > 0 ? steps_ / seconds : 0;
  const absl::StatusOr<v1::PaceResponse> pace = center_->Pace(own, SteadyTime() + options_.ask_timeout);
  if (!pace.ok()) return;
  next_turn_ = pace->next_fragment();
  if (options_.adapts) interval_ = PacedInterval(options_.rhythm.interval, own, pace->fastest_steps_per_second());
  // Halving lets older steps count less and less.
  steps_ /= 2;
  busy_ /= 2;
}

ExchangePlan ExchangePlanner::PlanAfter(const Moment& moment, absl::Span<const float> statistics) const {
  ExchangeMoment now = {moment.step, moment.in_flight_since};
  if (Decides()) now.due = statistics[kDue] > 0.5f;
  if (InTurns()) now.next_fragment = static_cast<uint32_t>(std::lround(statistics[kTurn]));
  return PlanExchange(options_.rhythm, now);
}

void ExchangePlanner::Begun(uint64_t step, const ExchangePlan& plan) {
  last_time_ = options_.clock();
  last_step_ = step;
  next_turn_ = static_cast<uint32_t>((plan.fragment.index + 1) % plan.fragment.parts);
}

}  // namespace hooke
