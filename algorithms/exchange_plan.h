#ifndef HOOKE_ALGORITHMS_EXCHANGE_PLAN_H_
#define HOOKE_ALGORITHMS_EXCHANGE_PLAN_H_

// Decides after each step whether a group exchanges with the center, which part of the vector, and when it applies the
// answers. All ranks of a group call PlanExchange with the same numbers, so they decide alike. Pure.
//
//   delay           Values sent after step s are answered while the group makes `delay` more steps. It applies the
//                   answers after step s + delay, or after the last step if that comes first.
//   fragments       One fragment (fragments.h) is exchanged every interval / fragments steps, each once per interval:
//                   Streaming DiLoCo, Douillard et al., arXiv 2501.18512.
//   each_step_until The whole vector is exchanged after each step up to this one, and the group waits for the answers:
//                   post-local SGD, Lin et al., arXiv 1808.07217.

#include <cstdint>
#include <optional>

#include "algorithms/sharding.h"

namespace hooke {

struct ExchangeRhythm {
  uint64_t interval = 1;  // Steps between two exchanges of the same value; >= 1, a multiple of `fragments`.
  // Steps between sending values and applying the answers. Less than interval / fragments, unless `due` is set.
  uint64_t delay = 0;
  uint32_t fragments = 1;        // >= 1.
  uint64_t each_step_until = 0;  // Up to this step the whole vector is exchanged after each step.
  uint64_t steps_total = 1;      // Steps of the whole training. After the last one the whole vector is exchanged.
};

// The state of a group that has done `step` steps.
struct ExchangeMoment {
  uint64_t step = 1;
  std::optional<uint64_t> in_flight_since;  // The step after which the exchange in flight began, if there is one.
  // Set when a clock, not `interval`, decides whether an exchange is due.
  std::optional<bool> due = std::nullopt;
  // The fragment that the servers choose (NextFragment in pace.h), below `fragments`. If unset, it follows from the
  // step.
  std::optional<uint32_t> next_fragment = std::nullopt;
};

struct ExchangePlan {
  // True: first wait for the exchange in flight and apply its answers.
  bool finishes = false;
  // True: then begin an exchange of `fragment`; {0, 1} is the whole vector.
  bool begins = false;
  Cut fragment = {0, 1};
  // True: wait at once for the answers of the exchange that begins.
  bool waits = false;
};

// Decides what the group does after `moment.step`. At most one exchange is in flight. If `due` is true while one stays
// in flight, none begins, and the caller sets `due` again after the next step.
ExchangePlan PlanExchange(const ExchangeRhythm& rhythm, const ExchangeMoment& moment);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_EXCHANGE_PLAN_H_
