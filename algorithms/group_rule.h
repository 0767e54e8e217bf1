#ifndef HOOKE_ALGORITHMS_GROUP_RULE_H_
#define HOOKE_ALGORITHMS_GROUP_RULE_H_

// The groups' half of an update rule: what a rank sends for its slice of the vector, and how it takes the answer. The
// servers' half is center_rule.h.
//
//   parameters  (elastic, none)                   sends x; answer d: x -= d. Momentum stays as it is (EAMSGD).
//   gradients   (sync, async, ssp, downpour)      sends the sum of its gradients; answer c: x = c.
//   distances   (average, bmuf, slowmo, diloco)   sends anchor - x; anchor is the last center received. Answer c: x =
//   c.
//
// Gradients and distances add up over steps. So an answer that comes one exchange late is still exact: the rank
// subtracts the values it answers from the values not yet sent. Buffers of the model have no gradient. Rules that do
// not send parameters send buffers as distances.
//
// The group may go on training between Prepare and the answers if it sends a copy of Prepare's values. An
// elastic answer is a difference, so it can be applied to later values. A rule of gradients keeps later gradients for
// the next exchange; a rule of distances keeps how far the group has moved since.
//
// Pure. One thread calls Begin, AddGradient and Prepare, never while answers are taken. Several threads may call Take
// and CorrectCopy at once, for different blocks.

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "algorithms/rule_facts.h"
#include "algorithms/sharding.h"

namespace hooke {

// The rank's vector and the part of it that the rank exchanges.
struct GroupSlice {
  uint64_t values = 0;      // Length of the whole vector.
  uint64_t parameters = 0;  // The vector's first `parameters` values are parameters; the rest are buffers.
  Range slice;              // The part that this rank exchanges, in whole blocks.
};

// A server's answer for one block.
struct BlockAnswer {
  uint64_t first = 0;            // Index of the block's first value in the whole vector.
  absl::Span<const float> sent;  // The values sent, which this answers.
  absl::Span<const float> values;
  bool earlier = false;  // True if `sent` belongs to an earlier exchange than the running one.
};

class GroupRule {
 public:
  virtual ~GroupRule() = default;

  // Whether the group's optimizer steps between exchanges; if not, only answers change its parameters.
  virtual bool StepsLocally() const = 0;

  // `vector` is the center when the group attached.
  virtual void Begin(absl::Span<const float> vector) = 0;

  // Called after each step with the group's mean gradient, one value for each parameter.
  virtual void AddGradient(absl::Span<const float> gradient) = 0;

  // Returns the values to send for `ranges`, which lie in the slice. The result is as long as `vector` and meaningful
  // in `ranges` only; it may be `vector` itself. It is valid until the next call, and Take changes it for the blocks
  // answered.
  virtual absl::Span<const float> Prepare(absl::Span<const float> vector, absl::Span<const Range> ranges) = 0;

  // For a caller that sends `copy`, a copy of Prepare's values as long as the vector. Call it if the answer to an
  // earlier exchange comes before the copy is sent: it corrects the copy for that answer. Sums lose what was sent;
  // parameters take the answer. The group itself still needs Take.
  virtual void CorrectCopy(const BlockAnswer& earlier, absl::Span<float> copy) const = 0;

  // Applies an answer for values of the slice to `vector`.
  virtual void Take(const BlockAnswer& answer, absl::Span<float> vector) = 0;
};

std::unique_ptr<GroupRule> MakeGroupRule(RuleName rule, const GroupSlice& slice);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_GROUP_RULE_H_
