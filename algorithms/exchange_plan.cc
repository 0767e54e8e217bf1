#include "algorithms/exchange_plan.h"

namespace hooke {

ExchangePlan PlanExchange(const ExchangeRhythm& rhythm, const ExchangeMoment& moment) {
  ExchangePlan plan;
  const bool last = moment.step == rhythm.steps_total;
  const bool each_step = moment.step <= rhythm.each_step_until;
  const bool flies = moment.in_flight_since.has_value();
  plan.finishes = flies && (last || moment.step >= *moment.in_flight_since + rhythm.delay);
  // At most one exchange is in flight.
  if (flies && !plan.finishes) return plan;
  if (last || each_step) {
    plan.begins = plan.waits = true;
    return plan;
  }
  const uint64_t stride = rhythm.interval / rhythm.fragments;
  plan.begins = moment.due.has_value() ? *moment.due : moment.step % stride == 0;
  if (!plan.begins) return plan;
  // When the step chooses the fragment, the exchange after the first `stride` steps is of fragment 0.
  const uint64_t turn = moment.next_fragment.value_or(moment.step / stride - 1);
  plan.fragment = {turn % rhythm.fragments, rhythm.fragments};
  plan.waits = rhythm.delay == 0;
  return plan;
}

}  // namespace hooke
