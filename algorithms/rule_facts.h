#ifndef HOOKE_ALGORITHMS_RULE_FACTS_H_
#define HOOKE_ALGORITHMS_RULE_FACTS_H_

// The table of facts that distinguish the update rules. Servers, groups and the check of jobs read it. center_rule.h
// has the servers' half of each rule, group_rule.h the groups' half, docs/rules/ the formulas. CONTRIBUTING.md says
// how to add a rule. Pure.

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace hooke {

// The numbers are those of AveragingSpec.Rule in proto/job.proto.
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

// The values that a group sends.
enum class RuleSends {
  kParameters,  // All parameters; the answer is a difference, or nothing.
  kGradients,   // The sum of gradients since the last answer; the answer is the center.
  kDistances,   // The distance from the group's last copy of the center; the answer is the center.
};

// When the servers change the center.
enum class RulePace {
  kAtOnce,    // Servers change it at each group's contribution, without waiting for other groups.
  kBounded,   // Like kAtOnce, but a group too far ahead of the slowest waits for its answer.
  kInRounds,  // Servers change it once for the contributions of several groups.
};

// For rules with has_momentum: whether the center's momentum has Nesterov's form.
enum class RuleNesterov {
  kNever,
  kByJob,   // As averaging.nesterov of the job says.
  kAlways,  // Where the momentum is above 0.
};

// RuleDefaults::momentum of a rule that takes 1 - 1/p for p groups.
constexpr double kMomentumByGroups = -1;

// The defaults of job keys that differ from rule to rule.
struct RuleDefaults {
  uint32_t interval;     // averaging.interval
  double learning_rate;  // averaging.learning_rate
  double momentum;       // averaging.momentum, 0 to < 1, or kMomentumByGroups.
};

struct RuleFacts {
  RuleName rule;
  const char* name;  // The name in job files.
  RuleSends sends;
  RulePace pace;
  bool shares;            // Groups learn from one another; under rule none each trains alone.
  bool steps_locally;     // The group's optimizer steps between exchanges; if not, only answers change its parameters.
  bool has_momentum;      // The center steps with averaging.learning_rate and averaging.momentum.
  bool relative_to_rate;  // The sent values are divided by the factor of the learning rate's schedule.
  RuleNesterov nesterov;
  RuleDefaults defaults;
};

// All rules, in the order of their numbers, which start at 1.
absl::Span<const RuleFacts> AllRules();
// Returns the facts of `rule`, which must be in the table.
const RuleFacts& FactsOf(RuleName rule);

// Returns the rule with this number, or nullopt if there is none.
std::optional<RuleName> RuleOf(uint32_t number);

// Whether servers may delay an answer to wait for other groups.
bool WaitsForOthers(RuleName rule);

// Whether the servers combine the contributions of several groups into one change of the center.
bool InRounds(RuleName rule);

// True: servers answer with the center. False: they answer with a difference, or with nothing.
bool AnswersWithCenter(RuleName rule);

// Whether a group sends distances or sums that count from its last copy of the center, while its own values have moved
// on. A lost center must then be rebuilt from that copy. If it were rebuilt from the group's values, it would already
// contain the distance, and the next exchange would count the distance twice.
bool SendsFromLastAnswer(RuleName rule);

// Whether a round of all groups makes the center the mean of the groups' parameters, weighted by the samples that each
// has trained since its last exchange. With one group the center then equals that group's parameters.
bool CenterIsMean(RuleName rule);

// Whether a rule exchanges gradients, which every rank of a group then needs.
bool SendsGradients(RuleName rule);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_RULE_FACTS_H_
