#ifndef HOOKE_ALGORITHMS_UPDATE_RULE_H_
#define HOOKE_ALGORITHMS_UPDATE_RULE_H_

// How the center changes when groups exchange with it. A rule is an object chosen once per job; servers call it block
// by block and know nothing else about it. Pure: it sees one block's values and that block's state, never a message, a
// thread or a clock. The groups' half of each rule is in group_rule.h; docs/rules/ has the formulas.

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "algorithms/compression.h"
#include "algorithms/optimizer.h"
#include "algorithms/schedule.h"

namespace hooke {

// What a group sends for one block.
struct Contribution {
  uint32_t group = 0;
  uint64_t sequence = 1;   // The group's steps so far. >= 1.
  uint64_t steps = 1;      // How many of them this stands for: its weight among others. >= 1.
  uint64_t staleness = 0;  // Updates that the block has had since the group got it.
  absl::Span<const float> values;
};

// What a whole round would be. By rules of distances one that is less, as groups are out of step, moves the center by
// so much less.
struct WholeRound {
  uint32_t groups = 0;    // Those that train, whether they are in this round or not; 0: those of this round.
  uint64_t interval = 0;  // The steps that each would have made; 0: those that were made.
};

// One block of the center, as a rule changes it.
struct CenterBlock {
  absl::Span<float> values;
  absl::Span<float> state;  // RuleTraits::state_values for each of the values; zero before the first update.
  uint64_t parameters = 0;  // The first so many values are parameters of the model; the rest are its buffers.
  uint64_t update = 1;      // Which update of this block it is, counted from 1.
  double epoch = 0;         // Passes over the data done when the contributions were made.
  WholeRound whole = {};    // By rules in_rounds.
};

// What a server must know of a rule besides Apply.
struct RuleTraits {
  bool in_rounds = false;       // Apply is called once for the contributions of all groups, else for each alone.
  bool drops_late = false;      // in_rounds: what was made from an older center than the present one does not count.
  bool answers_center = false;  // The answer is the center as it is then, else a difference, never given twice.
  uint32_t state_values = 0;    // Values of state that a block keeps for each of its own.
  // The center goes a part of the way to what one group sent, and keeps no state: where both are moderate (finite.h),
  // it and the answer stay finite. By other rules a learning rate or the state can make any values
  // infinite.
  bool averages = false;
  uint64_t staleness_bound = 0;  // A group that is more steps ahead of the slowest waits for its answer; 0: never.
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // "elastic", "sync": as in a job file.
  virtual const char* name() const = 0;

  virtual const RuleTraits& traits() const = 0;

  // Changes the block by the contributions and writes the answer for the groups. `from` is not empty, ascending by
  // group, each group once; without in_rounds it is one. All spans of values have the block's length; `answer` overlaps
  // no other. Thread-safe as long as no two calls share a block.
  virtual void Apply(absl::Span<const Contribution> from, const CenterBlock& block, absl::Span<float> answer) const = 0;
};

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

// The rule of that number; nothing: there is none.
std::optional<RuleName> RuleOf(uint32_t number);

struct UpdateRuleOptions {
  RuleName rule = RuleName::kElastic;
  double alpha = 0;  // kElastic: > 0, < 1.
  // kElastic: how answers will be encoded. They are rounded to that before the center moves by them: what center and
  // groups have together stays.
  Encoding answers = {};
  // All but kElastic and kNone: who steps the center. kAverage, kBmuf, kSlowMo and kDiLoCo: kSgd.
  OptimizerOptions optimizer = {};
  ScheduleOptions schedule = {};  // Of the optimizer.
  uint32_t groups = 1;            // Of the job; >= 1.
  uint64_t staleness_bound = 0;   // kSsp: >= 1.
  double staleness_power = 0;     // kAsync, kSsp, kDownpour: 0 to 4.
};

// INVALID_ARGUMENT for an option out of range, with what is allowed.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const UpdateRuleOptions& options);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_UPDATE_RULE_H_
