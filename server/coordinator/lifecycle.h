#ifndef HOOKE_SERVER_COORDINATOR_LIFECYCLE_H_
#define HOOKE_SERVER_COORDINATOR_LIFECYCLE_H_

// What follows when a group ends, and when all of them have. Pure functions of plain values that return what and why.
// Used by ClusterState; their tests call them with tables.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/coordinator/records.h"

namespace hooke {

struct RestartOptions {
  absl::Duration first_backoff = absl::Milliseconds(500);  // Doubles with each failure in a row.
  absl::Duration longest_backoff = absl::Seconds(30);
  uint32_t failures_max = 10;  // In a row without a new step, losses included: then the job fails.
  absl::Duration steady_after =
      absl::Minutes(5);  // A group that worked for so long before it was lost begins a new row.
};

// An end as the worker saw it.
struct GroupOutcome {
  bool ok = false;
  absl::StatusCode code = absl::StatusCode::kUnknown;  // Where not ok.
  std::string message;
  uint64_t step = 0;  // The furthest step known.
  // Ends in a row for want of a server, this one included: the job waits for that, however long. 0: another reason.
  uint32_t server_failures = 0;
};

// A group that is gone without an end: its worker is, or does not run it.
struct GroupLoss {
  std::string why;
  uint64_t step = 0;                             // The furthest step known.
  absl::Duration worked = absl::ZeroDuration();  // From the first to the last that this start said of its work.
};

struct GroupDecision {
  v1::GroupState state =
      v1::GROUP_STATE_WAITING;  // FINISHED; WAITING: start again after `wait`; FAILED: the job fails with `reason`.
  absl::Duration wait = absl::ZeroDuration();
  uint32_t failures = 0;
  uint64_t best_step = 0;
  std::string reason;  // Always set.
};

// Errors that a new try cannot mend (INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION, DATA_LOSS) and `failures_max`
// failures in a row without a new step fail the job; everything else is tried again after a growing wait. Ends for want
// of a server make the wait grow, but never fail the job.
GroupDecision AfterGroupEnd(const GroupRecord& group, const GroupOutcome& outcome, const RestartOptions& options);

// The first loss of a row starts the group again at once: most often the node went, and another takes it. Each further
// failure or loss without a new step, or without having worked for `steady_after`, doubles the wait, and
// `failures_max` of them fail the job: a group that takes its node's memory takes the next node's, too.
GroupDecision AfterGroupLost(const GroupRecord& group, const GroupLoss& loss, const RestartOptions& options);

struct JobDecision {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;  // UNSPECIFIED: nothing changes.
  std::string reason;                              // Set where something changes.
  bool start_evaluation = false;                   // One more group, with task EVALUATE.
};

// What the states of a job's groups make of it.
JobDecision AfterGroupChange(const JobRecord& job);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_LIFECYCLE_H_
