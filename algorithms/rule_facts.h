#ifndef HOOKE_ALGORITHMS_RULE_FACTS_H_
#define HOOKE_ALGORITHMS_RULE_FACTS_H_

// What distinguishes the update rules, as data: one table, from which servers, groups and the check of jobs take what
// they must know of a rule. update_rule.h has the servers' half of each rule, group_rule.h the groups', docs/rules/ the
// formulas. Pure.

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace hooke {

// Numbered as AveragingSpec.Rule in proto/job.proto numbers them.
enum class RuleName {
  kElastic = 1,
  kNone,
  kSync,
  kAsync,
  kSsp,
  kDownpour,
  kAverage,
  kBmuf,
  kSlowMo,
  kDiLoCo,
};

// What a group sends.
enum class RuleSends {
  kParameters,  // All of them; the answer is a difference, or nothing.
  kGradients,   // Their sum since the last answer; the answer is the center.
  kDistances,   // How far it went from where the center last came; the answer is the center.
};

// When the servers change the center.
enum class RulePace {
  kAtOnce,    // For each group, whatever the others do.
  kBounded,   // For each group; one that is too far ahead of the slowest waits for its answer.
  kInRounds,  // Once for the contributions of all groups.
};

struct RuleFacts {
  RuleName rule;
  const char* name;  // As in a job file.
  RuleSends sends;
  RulePace pace;
  bool shares;            // Groups learn from one another; under rule none each trains alone.
  bool steps_locally;     // The group's optimizer steps between exchanges; if not, only answers change its parameters.
  bool has_momentum;      // The center steps with a momentum of its own, averaging.momentum.
  bool relative_to_rate;  // What a group sends is divided by the factor of its learning rate's schedule.
};

// In the order of their numbers, which are 1 and up.
absl::Span<const RuleFacts> AllRules();
// `rule` must be in the table.
const RuleFacts& FactsOf(RuleName rule);

// The rule of that number; nothing: there is none.
std::optional<RuleName> RuleOf(uint32_t number);

// Whether servers may hold an answer back until other groups have come as far.
bool WaitsForOthers(RuleName rule);

// Whether the servers put the contributions of several groups together.
bool InRounds(RuleName rule);

// Whether servers answer with the center; else with a difference, or with nothing.
bool AnswersWithCenter(RuleName rule);

// Whether what a group sends begins where the center last came, and its values have gone on from there: a center that
// is lost is made again from what it was then, or what is sent would count twice.
bool SendsFromLastAnswer(RuleName rule);

// Whether a rule exchanges gradients, which every rank of a group then needs.
bool SendsGradients(RuleName rule);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_RULE_FACTS_H_
