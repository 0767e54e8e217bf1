#include "worker/training/rank_zero.h"

#include <algorithm>
#include <cstdint>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "clocks/steady_condition.h"
#include "clocks/steady_time.h"
#include "worker/exchange/agreement.h"
#include "worker/exchange/server_exchange.h"

namespace hooke {
namespace {

constexpr absl::Duration kSignOfLife = absl::Seconds(1);

absl::Status Attempts(const RankZeroCall& call, const RankZeroWork& work, const absl::Notification& group_failed) {
  const absl::Time end = call.clock() + call.timeout;
  while (true) {
    absl::Status outcome = work.attempt(end);
    if (outcome.ok() || IsFatalExchangeError(outcome) || group_failed.HasBeenNotified()) return outcome;
    if (call.clock() + call.pause >= end) return outcome;
    call.sleep(call.pause);
  }
}

// Sets `working` on all ranks to its value on rank 0: whether rank 0 still works. Collective.
absl::Status BroadcastWorking(Group& group, bool& working) {
  uint64_t number = working ? 1 : 0;
  absl::Status status = BroadcastNumbers(group, absl::MakeSpan(&number, 1));
  working = number != 0;
  return status;
}

absl::Status Follow(Group& group) {
  bool working = true;
  while (working) {
    if (absl::Status status = BroadcastWorking(group, working); !status.ok()) return status;
  }
  absl::Status outcome;
  if (absl::Status status = BroadcastOutcome(group, outcome); !status.ok()) return status;
  return outcome;
}

}  // namespace

absl::Status InRankZero(Group& group, const RankZeroCall& call, const RankZeroWork& work) {
  if (group.rank() != 0) return Follow(group);
  const absl::Duration sign_of_life = std::min(kSignOfLife, call.collective_timeout / 4);
  absl::Status outcome, in_group;
  absl::Notification group_failed;
  absl::Mutex mutex;
  SteadyCondition changed;
  bool done = false;  // `mutex` guards it.
  std::thread worker([&] {
    outcome = Attempts(call, work, group_failed);
    absl::MutexLock lock(&mutex);
    done = true;
    changed.SignalAll();
  });
  bool working = true;
  while (working && in_group.ok()) {
    {
      absl::MutexLock lock(&mutex);
      working = !changed.Await(mutex, SteadyTime() + sign_of_life, [&done] { return done; });
    }
    in_group = BroadcastWorking(group, working);
  }
  if (!in_group.ok()) {
    group_failed.Notify();
    if (work.stop) work.stop();
  }
  worker.join();
  if (in_group.ok()) in_group = BroadcastOutcome(group, outcome);
  return in_group.ok() ? outcome : in_group;
}

}  // namespace hooke
