#ifndef HOOKE_ALGORITHMS_UPDATE_RULE_H_
#define HOOKE_ALGORITHMS_UPDATE_RULE_H_

// How the center changes when a group exchanges with it. A rule is an object chosen once per job; servers call it block
// by block and know nothing else about it. Pure: it sees one block's values and that block's state, never a message, a
// thread or a clock.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hooke {

// What a group sends for one block.
struct Contribution {
  uint32_t group = 0;
  absl::Span<const float> values;
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // "elastic", "none".
  virtual const char* name() const = 0;

  // Changes `center` (one block) by the contribution and writes the answer for the group. All three spans have the same
  // length; `answer` overlaps neither of the others. Thread-safe as long as no two calls share a block.
  virtual void Apply(const Contribution& from, absl::Span<float> center, absl::Span<float> answer) const = 0;
};

enum class RuleName { kElastic, kNone };

struct UpdateRuleOptions {
  RuleName rule = RuleName::kElastic;
  double alpha = 0;  // kElastic: > 0, < 1.
};

// INVALID_ARGUMENT for an alpha out of range, with what is allowed.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const UpdateRuleOptions& options);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_UPDATE_RULE_H_
