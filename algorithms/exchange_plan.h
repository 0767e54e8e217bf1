#ifndef HOOKE_ALGORITHMS_EXCHANGE_PLAN_H_
#define HOOKE_ALGORITHMS_EXCHANGE_PLAN_H_

// Decides after each step whether a group exchanges with the center, which part of the vector, and when it applies the
// answers. All ranks of a group ask with the same numbers and so decide alike. Pure.
//
//   delay           Training goes on for so many steps while the servers answer what was sent after step s. Answers are
//                   applied after step s + delay.
//   fragments       One fragment (fragments.h) is exchanged every interval / fragments steps, each once per interval:
//                   Streaming DiLoCo, Douillard et al., arXiv 2501.18512.
//   each_step_until The whole vector is exchanged after each step up to this one, and the group waits for the answers:
//                   post-local SGD, Lin et al., arXiv 1808.07217.

#include <cstdint>
#include <optional>

#include "algorithms/sharding.h"

namespace hooke {

struct ExchangeRhythm {
  uint64_t interval = 1;         // Steps between two exchanges of the same value; >= 1, a multiple of `fragments`.
  uint64_t delay = 0;            // Steps. Below interval / fragments, unless `due` says when exchanges begin.
  uint32_t fragments = 1;        // >= 1.
  uint64_t each_step_until = 0;  // Steps.
  uint64_t steps_total = 1;      // The last step ends with an exchange of the whole vector.
};

// The state of a group that has done `step` steps.
struct ExchangeMoment {
  uint64_t step = 1;
  std::optional<uint64_t> in_flight_since;  // The step after which the exchange in flight began, if there is one.
  // Set when a clock, not `interval`, decides whether an exchange is due.
  std::optional<bool> due = std::nullopt;
  // The fragment that the servers choose (NextFragment in pace.h), below `fragments`. If unset, the step chooses it.
  std::optional<uint32_t> next_fragment = std::nullopt;
};

struct ExchangePlan {
  // First, wait for the exchange in flight and apply its answers.
  bool finishes = false;
  // Then begin an exchange of `fragment`; {0, 1} is the whole vector.
  bool begins = false;
  Cut fragment = {0, 1};
  // Wait for its answers at once.
  bool waits = false;
};

// At most one exchange is in flight. If `due` is set while one is, nothing begins; the caller asks again after the next
// step.
ExchangePlan PlanExchange(const ExchangeRhythm& rhythm, const ExchangeMoment& moment);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_EXCHANGE_PLAN_H_
