#ifndef HOOKE_ALGORITHMS_GROUP_RULE_H_
#define HOOKE_ALGORITHMS_GROUP_RULE_H_

// The groups' half of an update rule: what a rank sends for its slice of the vector, and how it takes the answer. The
// servers' half is center_rule.h.
//
//   parameters  (like elastic)  sends x. Answer d: x -= d. Momentum stays as it is (EAMSGD).
//   gradients   (like sync)     sends the sum of its gradients. Answer c: x = c.
//   distances   (like average)  sends anchor - x; anchor is the last center received. Answer c: x = c.
//
// Gradients and distances add up over steps. So an answer that comes one exchange late is still exact: the rank
// subtracts the values that were answered from the values not yet sent. Buffers of the model have no gradient. Rules
// that do not send parameters send buffers as distances.
//
// The group may go on training between Prepare and the answers if it sends a copy of Prepare's values. An elastic
// answer is a difference, so it can be applied to later values. A rule of gradients keeps gradients that come after
// Prepare for the next exchange. A rule of distances keeps how far the group has moved since Prepare.
//
// Pure. One thread calls Begin, AddGradient and Prepare, never while answers are taken. Several threads may call Take
// and CorrectCopy at once, for different blocks.

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "algorithms/center_gap.h"
#include "algorithms/rule_facts.h"
#include "algorithms/sharding.h"

namespace hooke {

// The rank's vector and the part of it that the rank exchanges.
struct GroupSlice {
  uint64_t values = 0;      // Length of the whole vector.
  uint64_t parameters = 0;  // The vector's first `parameters` values are parameters; the rest are buffers.
  Range slice;              // The part that this rank exchanges, in whole blocks.
  double alpha = 0;         // Of rule elastic (JobSpecForShard.alpha); other rules do not read it.
};

// A server's answer for one block.
struct BlockAnswer {
  uint64_t first = 0;            // Index of the block's first value in the whole vector.
  absl::Span<const float> sent;  // The values that the group sent and the server answers.
  absl::Span<const float> values;
  bool earlier = false;  // True if `sent` belongs to an earlier exchange than the running one.
};

class GroupRule {
 public:
  virtual ~GroupRule() = default;

  // Whether the group's optimizer steps between exchanges; if not, only answers change its parameters.
  virtual bool StepsLocally() const = 0;

  // Starts from `vector`, the center that the group got when it attached.
  virtual void Begin(absl::Span<const float> vector) = 0;

  // Adds the gradient of a step: the mean over the group's ranks, with one value for each parameter.
  virtual void AddGradient(absl::Span<const float> gradient) = 0;

  // Returns the values to send for `ranges`, which lie in the slice. The result is as long as `vector` and meaningful
  // in `ranges` only. It may be `vector` itself. It is valid until the next call of Prepare, and Take changes it for
  // the blocks answered.
  virtual absl::Span<const float> Prepare(absl::Span<const float> vector, absl::Span<const Range> ranges) = 0;

  // Corrects `copy`, a copy of Prepare's values that has not been sent, for the answer to an earlier exchange. Call it
  // if that answer comes after the copy was made. Under rules of gradients and distances it subtracts the values that
  // were answered; under rules of parameters it applies the answer. `copy` is as long as the vector. Call Take for the
  // answer, too.
  virtual void CorrectCopy(const BlockAnswer& earlier, absl::Span<float> copy) const = 0;

  // Returns how far the group was from the center in the exchange to which `answer` belongs. Call it before Take.
  // nullopt: there is no such distance. A group that does not step locally has the center's parameters, and under rule
  // none the answers say nothing about the center.
  //
  // Under elastic, the distance is to the center before the exchange changed it. Under rules of distances, it is to the
  // center that the group got last. Under downpour, it is to the center in the answer.
  virtual std::optional<CenterGap> Gap(const BlockAnswer& answer, absl::Span<const float> vector) const = 0;

  // Applies an answer for values of the slice to `vector`.
  virtual void Take(const BlockAnswer& answer, absl::Span<float> vector) = 0;
};

std::unique_ptr<GroupRule> MakeGroupRule(RuleName rule, const GroupSlice& slice);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_GROUP_RULE_H_
