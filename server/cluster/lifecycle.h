#ifndef HOOKE_SERVER_CLUSTER_LIFECYCLE_H_
#define HOOKE_SERVER_CLUSTER_LIFECYCLE_H_

// Decides what happens after a group has ended or is lost, and what its job becomes. Pure functions of plain values;
// each returns its decision and the reason.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/records/records.h"

namespace hooke {

struct RestartOptions {
  absl::Duration first_backoff = absl::Milliseconds(500);  // Doubles with each failure in a row.
  absl::Duration longest_backoff = absl::Seconds(30);
  // The job fails after this many failures and losses in a row, without a new step between them.
  uint32_t failures_max = 10;
  // A group is held after this many ends in a row in the same way, without a new step between them. 0: never.
  uint32_t repeats_max = 3;
  // A group that worked for at least this long before it was lost begins a new row of failures.
  absl::Duration steady_after = absl::Minutes(5);
};

// The end of a group, as its worker reported it or as the coordinator found it.
struct GroupOutcome {
  bool ok = false;
  absl::StatusCode code = absl::StatusCode::kUnknown;  // Set if not ok.
  std::string message;
  uint64_t step = 0;  // The furthest step known.
  // How often in a row this group ended because a server was missing, without a new step in between. Counts this end.
  // 0: it ended for another reason.
  uint32_t server_failures = 0;
  std::string cause = {};  // CauseOf the end; empty: it is not compared with others.
  // The step at which the job's generation began, if there was one before it.
  std::optional<uint64_t> began_at = std::nullopt;
};

// The loss of a group whose end nobody reported. Its worker is lost, or does not run the group any more.
struct GroupLoss {
  std::string why;
  uint64_t step = 0;                             // The furthest step known.
  absl::Duration worked = absl::ZeroDuration();  // Time between the first and the last report that this start works.
};

struct GroupDecision {
  // FINISHED: the group ended well. WAITING: the group starts again after `wait`. HELD: it starts again when a user
  // says so. FAILED: the job fails with `reason`.
  v1::GroupState state = v1::GROUP_STATE_WAITING;
  absl::Duration wait = absl::ZeroDuration();
  uint32_t failures = 0;
  uint64_t best_step = 0;
  std::string reason;      // Always set.
  std::string cause = {};  // As in GroupRecord.
  uint32_t repeats = 0;
};

// Returns whether a new try may succeed after this error.
bool MendsItself(absl::StatusCode code);

// Decides what follows the end of a group. Errors that a new try cannot mend (INVALID_ARGUMENT, NOT_FOUND,
// FAILED_PRECONDITION, DATA_LOSS) fail the job. But if the number of groups has changed, and the group has made no step
// since then, it is held: another number may do. The job also fails after `failures_max` failures in a row without a
// new step. After `repeats_max` ends in a row with the same cause, the group is held. After any other error the group
// starts again, and its wait grows. Ends because of a missing server make the wait grow, but never fail the job or hold
// the group.
GroupDecision AfterGroupEnd(const GroupRecord& group, const GroupOutcome& outcome, const RestartOptions& options);

// Decides what follows the loss of a group. After the first loss of a row the group starts again at once. Most often
// only its node is gone, and another node takes the group. Each further failure or loss of the row doubles the wait,
// and `failures_max` of them fail the job. For example, a group that exhausts the memory of one node would exhaust that
// of the next node, too. A new step, or work for `steady_after`, begins a new row.
GroupDecision AfterGroupLost(const GroupRecord& group, const GroupLoss& loss, const RestartOptions& options);

struct JobDecision {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;  // UNSPECIFIED: nothing changes.
  std::string reason;                              // Set if something changes.
  bool start_evaluation = false;                   // The job needs one more group, with task EVALUATE.
};

// Decides the job's next state from the states of its groups. It is held if some are, and none runs or waits. A job
// with a command ends with its groups: only built-in networks have test data on which a center can be evaluated.
JobDecision AfterGroupChange(const JobRecord& job);

// Returns CauseOf the end. Empty if somebody stopped the group.
std::string CauseOfEnd(const GroupRecord& group, const GroupOutcome& outcome);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_LIFECYCLE_H_
