#ifndef HOOKE_ALGORITHMS_GROUP_RULE_H_
#define HOOKE_ALGORITHMS_GROUP_RULE_H_

// The groups' half of an update rule: what a rank sends for its slice of the vector, and what an answer does to it. The
// servers' half is update_rule.h.
//
//   pull      (elastic, none)                   sends x; answer d: x -= d. Momentum stays as it is (EAMSGD).
//   gradient  (sync, async, ssp, downpour)      sends the sum of its gradients; answer c: x = c.
//   distance  (average, bmuf, slowmo, diloco)   sends anchor - x, anchor being c as it last came; answer c: x = c.
//
// What a gradient or distance rule sends is linear in the steps it stands for. So an answer that comes an exchange too
// late, to what was sent then, is exact, too: what it answers is taken off what is still to be sent. Buffers of the
// model, which have no gradient, travel as distances with all but pull.
//
// The group may go on training between Prepare and the answers, when it sends a copy of what Prepare gave: a pull's
// answer is a difference, which may come off later values as well; a gradient rule keeps what came after the copy for
// the next exchange; a distance rule keeps how far the group has moved since.
//
// Pure. Begin, AddStep and Prepare are called by one thread, none while answers are taken; Take and TakeOff by several
// at once, for different blocks.

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "algorithms/update_rule.h"

namespace hooke {

// The rank's vector and what it exchanges of it.
struct GroupSlice {
  uint64_t values = 0;      // Of the whole vector.
  uint64_t parameters = 0;  // The first so many of them; the rest are buffers.
  Range slice;              // This rank's, in whole blocks.
};

// What a server answered for one block.
struct BlockAnswer {
  uint64_t first = 0;            // Of the whole vector: the block's first value.
  absl::Span<const float> sent;  // What it answers.
  absl::Span<const float> values;
  bool earlier = false;  // What it answers was sent by an earlier exchange than the one that runs.
};

class GroupRule {
 public:
  virtual ~GroupRule() = default;

  // Whether the group's optimizer steps between exchanges; if not, only answers change its parameters.
  virtual bool StepsLocally() const = 0;

  // `vector` is what the center held when the group attached.
  virtual void Begin(absl::Span<const float> vector) = 0;

  // After each step: the group's mean gradient, as long as the parameters.
  virtual void AddStep(absl::Span<const float> gradient) = 0;

  // What to send of `ranges`, parts of the slice: as long as `vector`, meaningful there; valid until the next call, and
  // changed by Take where it was answered. May be `vector` itself.
  virtual absl::Span<const float> Prepare(absl::Span<const float> vector, absl::Span<const Range> ranges) = 0;

  // Where a copy of what Prepare gave is sent, which Take does not change: the answer to an earlier exchange has come
  // before `copy`, as long as the vector, was sent. Takes it off the copy, too; the group gets it by Take.
  virtual void TakeOff(const BlockAnswer& earlier, absl::Span<float> copy) const = 0;

  // An answer for values of the slice.
  virtual void Take(const BlockAnswer& answer, absl::Span<float> vector) = 0;
};

std::unique_ptr<GroupRule> MakeGroupRule(RuleName rule, const GroupSlice& slice);

// Whether servers may hold an answer back until other groups have come as far.
bool WaitsForOthers(RuleName rule);

// Whether the servers put the contributions of several groups together.
bool InRounds(RuleName rule);

// Whether what a group sends begins where the center last came, and its values have gone on from there: a center that
// is lost is made again from what it was then, or what is sent would count twice.
bool SendsFromLastAnswer(RuleName rule);

// Whether servers answer with the center; else with a difference, or with nothing.
bool AnswersWithCenter(RuleName rule);

// Whether a rule exchanges gradients, which every rank of a group then needs.
bool SendsGradients(RuleName rule);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_GROUP_RULE_H_
