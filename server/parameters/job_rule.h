#ifndef HOOKE_SERVER_PARAMETERS_JOB_RULE_H_
#define HOOKE_SERVER_PARAMETERS_JOB_RULE_H_

// Reads a job's update rule from the job description that its groups send when they attach. Pure.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "algorithms/center_rule.h"
#include "algorithms/compression.h"
#include "algorithms/round.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

struct JobRule {
  CenterRuleOptions options;  // The options for MakeCenterRule.
  RuleTraits traits;          // The traits of the rule that `options` make.
  Encoding sent;              // How groups encode the values that they send.
  Encoding answered;          // How servers encode the values that they answer with.
  // For rules with rounds. Under a staleness bound, `grace` also limits how long a group waits for slower ones.
  RoundOptions round;
};

// Reads the job's update rule. INVALID_ARGUMENT names the field that is out of range, and what is allowed.
absl::StatusOr<JobRule> ReadJobRule(const v1::JobSpecForShard& job);

// Returns OK if `value` is 1 to `most`. Otherwise INVALID_ARGUMENT names JobSpecForShard's `field` and what is allowed.
absl::Status CheckRange(absl::string_view field, uint64_t value, uint64_t most);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_JOB_RULE_H_
