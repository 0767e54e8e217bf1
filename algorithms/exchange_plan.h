#ifndef HOOKE_ALGORITHMS_EXCHANGE_PLAN_H_
#define HOOKE_ALGORITHMS_EXCHANGE_PLAN_H_

// When a group exchanges with the center, what part of the vector, and when it applies the answers. All ranks of a
// group ask after each step with the same numbers and so do the same. Used by the trainer.
//
//   delay           what is sent after step s is answered while training goes on, and applied after step s + delay.
//   fragments       after every interval / fragments steps one fragment (fragments.h) is exchanged, so each once in an
//                   interval: Streaming DiLoCo, Douillard et al., arXiv 2501.18512.
//   each_step_until post-local SGD (Lin et al., arXiv 1808.07217): until so many steps the whole vector is exchanged
//                   after each step, and answers are waited for.
//
// Pure.

#include <cstdint>
#include <optional>

#include "algorithms/sharding.h"

namespace hooke {

struct ExchangeRhythm {
  uint64_t interval = 1;         // Steps between two exchanges of the same value; >= 1, a multiple of `fragments`.
  uint64_t delay = 0;            // Steps; below interval / fragments, where exchanges are due by steps.
  uint32_t fragments = 1;        // >= 1.
  uint64_t each_step_until = 0;  // Steps.
  uint64_t steps_total = 1;      // The last of them ends with an exchange of everything.
};

// Where a group is: it has done `step` steps.
struct ExchangeMoment {
  uint64_t step = 1;
  std::optional<uint64_t> in_flight_since;  // The step after which the exchange began that has not been settled.
  // Somebody else than the interval says whether one is due: a clock.
  std::optional<bool> due = std::nullopt;
  // Whose turn it is, where the groups' rounds say so; below `fragments`. Else they take turns by the step.
  std::optional<uint32_t> next_fragment = std::nullopt;
};

struct ExchangePlan {
  // First, the exchange in flight is waited for and its answers are applied;
  bool settles = false;
  // then one begins, of this fragment ({0, 1}: everything),
  bool begins = false;
  Cut fragment = {0, 1};
  // and is settled at once.
  bool waits = false;
};

// At most one exchange is in flight: with `due` one that comes too early waits for the next step's question.
ExchangePlan PlanExchange(const ExchangeRhythm& rhythm, const ExchangeMoment& moment);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_EXCHANGE_PLAN_H_
