#ifndef HOOKE_SERVER_PARAMETERS_JOB_RULE_H_
#define HOOKE_SERVER_PARAMETERS_JOB_RULE_H_

// The update rule that a job asks for, from what its groups say when they attach. Pure.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "algorithms/compression.h"
#include "algorithms/round.h"
#include "algorithms/update_rule.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

struct JobRule {
  UpdateRuleOptions options;  // MakeUpdateRule takes them.
  RuleTraits traits;          // Of the rule they make.
  Encoding sent;              // How groups encode what they send, and
  Encoding answered;          // how servers encode what they answer.
  RoundOptions round;         // Of rules with rounds; `grace` also is how long a group waits for slower ones.
};

// INVALID_ARGUMENT naming the field that is out of range, and what is allowed.
absl::StatusOr<JobRule> ReadJobRule(const v1::JobSpecForShard& job);

// Whether JobSpecForShard's `field` is 1 to `most`; INVALID_ARGUMENT names it, and what is allowed.
absl::Status CheckRange(absl::string_view field, uint64_t value, uint64_t most);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_JOB_RULE_H_
