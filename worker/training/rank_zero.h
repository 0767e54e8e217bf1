#ifndef HOOKE_WORKER_TRAINING_RANK_ZERO_H_
#define HOOKE_WORKER_TRAINING_RANK_ZERO_H_

// Lets rank 0 do some work for the group, for example at the servers, while the other ranks wait. The work may take
// longer than the limit of a collective.
//
// A second thread of rank 0 does the work. Meanwhile rank 0's first thread sends one small broadcast after another. So
// the other ranks know that rank 0 still works, and all ranks soon notice if a rank is gone.

#include <functional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "mpi_group/group.h"

namespace hooke {

struct RankZeroCall {
  absl::Duration timeout;                          // Limit for all attempts together.
  absl::Duration collective_timeout;               // The group's deadline.
  absl::Duration pause = absl::Milliseconds(250);  // Pause between two attempts.
  std::function<absl::Time()> clock = SteadyTime;  // For `timeout`; only the working thread calls it.
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

struct RankZeroWork {
  // Makes one attempt, which ends by `deadline`. InRankZero repeats it after an error that is not final
  // (IsFatalExchangeError).
  std::function<absl::Status(absl::Time deadline)> attempt;
  // Called when the group has failed: makes a running attempt end soon, with any error. If empty, the attempt runs
  // until its deadline.
  std::function<void()> stop;
};

// Collective. Rank 0 attempts the work; the other ranks ignore `work`. All ranks return the outcome of the last
// attempt, or the group's error. Until InRankZero returns, nothing else may use the objects that `attempt` uses.
absl::Status InRankZero(Group& group, const RankZeroCall& call, const RankZeroWork& work);

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_RANK_ZERO_H_
