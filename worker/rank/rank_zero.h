#ifndef HOOKE_WORKER_RANK_RANK_ZERO_H_
#define HOOKE_WORKER_RANK_RANK_ZERO_H_

// What rank 0 does alone for the group, at the servers, while the other ranks wait for it: longer than a collective may
// take, if need be. A thread of rank 0 does the work; meanwhile its own thread tells the others in one small broadcast
// after another that it is still at it, so that none of them misses it and all learn at once of a rank that is gone.

#include <functional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"

namespace hooke {

struct RankZeroCall {
  absl::Duration timeout;                          // Of all attempts together.
  absl::Duration collective_timeout;               // The group's deadline.
  absl::Duration pause = absl::Milliseconds(250);  // Between two attempts.
  std::function<absl::Time()> clock = absl::Now;   // Of the attempts; called by the working thread alone.
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

struct RankZeroWork {
  // One attempt, until the time given. Tried again while its error is none that is final (IsFatalExchangeError).
  std::function<absl::Status(absl::Time deadline)> attempt;
  // Makes an attempt that is running end soon, with any error; called where the group has failed. May be empty, then
  // the attempt's own deadline ends it.
  std::function<void()> stop;
};

// Collective. Rank 0 attempts the work, the others ignore theirs; all return the last attempt's outcome, or the group's
// error. What `attempt` touches belongs to it until this returns.
absl::Status InRankZero(Group& group, const RankZeroCall& call, const RankZeroWork& work);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_RANK_ZERO_H_
