#ifndef HOOKE_ALGORITHMS_CENTER_RULE_H_
#define HOOKE_ALGORITHMS_CENTER_RULE_H_

// How the center changes when groups exchange with it. A shard has one rule object, which is called block by block.
// Apart from rule_facts.h, servers know rules only by this interface. Pure: a rule sees one block's values and state,
// never a message, a thread or a clock. group_rule.h has the groups' half of each rule; docs/rules/ has the formulas.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "algorithms/compression.h"
#include "algorithms/learning_rate.h"
#include "algorithms/optimizer.h"
#include "algorithms/rule_facts.h"

namespace hooke {

// A group sends one of these for each block of an exchange.
struct Contribution {
  uint32_t group = 0;
  uint64_t sequence = 1;  // The group's steps so far; >= 1.
  uint64_t steps = 1;     // The steps that this contribution stands for; >= 1.
  // Updates of the block since the group received it. 0 in the first exchange of a start, when the shard does not know
  // the group's version.
  uint64_t staleness = 0;
  absl::Span<const float> values;
  // The samples of a step, as weights of the round's contributions; only their ratios count. In a round a contribution
  // weighs steps * samples. > 0.
  double samples = 1;
};

// How many groups and steps make a whole round. Under rules of distances (rule_facts.h), a smaller round moves the
// center proportionally less.
struct WholeRound {
  uint32_t groups = 0;    // The number of groups that train, in this round or not. 0: only this round's.
  uint64_t interval = 0;  // Steps that each group makes between exchanges. 0: the steps that it made.
};

// A block of the center, which Apply changes.
struct CenterBlock {
  absl::Span<float> values;
  absl::Span<float> state;  // RuleTraits::state_values floats for each value; zero before the first update.
  uint64_t parameters = 0;  // The first `parameters` values are parameters of the model; the rest are its buffers.
  uint64_t update = 1;      // The number of this update of the block, counted from 1.
  double epoch = 0;         // Passes over the data that were done when the contributions were made.
  WholeRound whole = {};    // Rules of distances read it; other rules do not.
};

// The facts about a rule that a server needs besides Apply. They follow from the table in rule_facts.h, the rule's
// options and its optimizer.
struct RuleTraits {
  bool in_rounds = false;  // Apply takes the contributions of a round at once; otherwise one at a time.
  // With in_rounds: servers drop a contribution that was made from an older center than the present one.
  bool drops_late = false;
  // True: the answer is the center after Apply. False: the answer is a difference, which a server must keep if it may
  // have to repeat the answer.
  bool answers_center = false;
  uint32_t state_values = 0;  // Floats of state that a block keeps for each of its values.
  // True: the new center is a weighted average of the center and one contribution, and the rule has no state. If center
  // and contribution are moderate (finite.h), the new center and the answer are finite. Under other rules a learning
  // rate or the state can make values infinite.
  bool averages = false;
  // Rules of RulePace::kBounded: a group that is more than this many steps ahead of the slowest waits for its answer.
  // Other rules: 0.
  uint64_t staleness_bound = 0;
};

class CenterRule {
 public:
  virtual ~CenterRule() = default;

  // The name in job files, like "elastic".
  virtual const char* name() const = 0;

  virtual const RuleTraits& traits() const = 0;

  // Changes the block by the contributions and writes the answer for their groups. `from` is ascending by group, with
  // each group once. Without in_rounds it has one element, otherwise at least one. All value spans have the block's
  // length, and `answer` overlaps no other span. Thread-safe if no two calls share a block.
  virtual void Apply(absl::Span<const Contribution> from, const CenterBlock& block, absl::Span<float> answer) const = 0;
};

constexpr double kStalenessPowerMax = 4;

struct CenterRuleOptions {
  RuleName rule = RuleName::kElastic;
  double alpha = 0;  // kElastic: the share of the distance by which group and center move; > 0, < 1.
  // kElastic: the encoding of answers. The rule rounds an answer to this encoding before it moves the center by the
  // answer. So center and groups move by the same values.
  Encoding answers = {};
  // Rules that answer with the center: the optimizer that steps it. Rules of distances need kSgd.
  OptimizerOptions optimizer = {};
  LearningRateOptions schedule = {};  // The learning-rate schedule of `optimizer`.
  uint32_t groups = 1;                // The number of groups of the job; >= 1.
  uint64_t staleness_bound = 0;       // Rules of RulePace::kBounded: >= 1.
  double staleness_power = 0;         // Rules that step the center but not in rounds: 0 to kStalenessPowerMax.
};

// INVALID_ARGUMENT if an option is out of range; the message names the option and its value.
absl::StatusOr<std::unique_ptr<CenterRule>> MakeCenterRule(const CenterRuleOptions& options);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_CENTER_RULE_H_
