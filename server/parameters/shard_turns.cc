// The turns of Shard: how an exchange is checked, comes to its block, and ends, at once or after a wait.

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "clocks/steady_condition.h"
#include "server/parameters/shard.h"

namespace hooke {
namespace {

// Locks a mutex, and adds the time that this took to `waited`. The clock is read only if somebody else has the mutex.
class ABSL_SCOPED_LOCKABLE TimedLock {
 public:
  TimedLock(absl::Mutex* mutex, const WaitClock& clock, absl::Duration& waited) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    if (mutex->TryLock()) return;
    const absl::Time since = clock.Now();
    mutex->Lock();
    waited += clock.Now() - since;
  }
  ~TimedLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  TimedLock(const TimedLock&) = delete;
  TimedLock& operator=(const TimedLock&) = delete;

 private:
  absl::Mutex* const mutex_;
};

// The wait of a thread in ApplyBlock.
struct BlockedThread {
  absl::Mutex mutex;
  SteadyCondition changed;
  std::optional<absl::Status> outcome ABSL_GUARDED_BY(mutex);
};

}  // namespace

std::optional<absl::Status> Shard::Begin(Turn& turn) {
  if (absl::Status status = parts_.attachments.CheckOpen(turn.exchange.speaker); !status.ok()) return status;
  if (absl::Status status = turn.Prepare(plan()); !status.ok()) return status;
  TurnEnds ends;
  // If the turn waits, another thread may already have ended it here, so it must not be touched any more.
  std::optional<absl::Status> status = ApplyTurn(turn, ends);
  if (status.has_value() && status->ok() && plan().IsLastStep(turn.exchange.sequence) && LeaveAtEnd(turn)) {
    ends.changes_groups = true;
  }
  Finish(std::move(ends));
  return status;
}

std::optional<absl::Status> Shard::ApplyTurn(Turn& turn, TurnEnds& ends) {
  const bool in_rounds = parts_.rule->traits().in_rounds;
  BlockTurns& at = blocks_[turn.block];
  const TimedLock lock(&at.mutex, *parts_.clock, turn.contended);
  // The check is repeated here, because a last snapshot may have copied this block since Begin checked it.
  if (closed()) return parts_.attachments.WhyClosed();
  if (turn.id == at.block.applied(turn.group())) {
    if (!in_rounds) return singles_.Repeat(turn, at, ends);
    rounds_.Repeat(turn, at);
    return absl::OkStatus();
  }
  if (absl::Status status = at.block.CheckNext(turn.group(), turn.id); !status.ok()) return status;
  return in_rounds ? rounds_.Apply(turn, at, ends) : singles_.Apply(turn, at, ends);
}

// Checks whether the group has made its last step at all blocks. Only the turn of a rank's last block does so, because
// a rank sends that block last.
bool Shard::LeaveAtEnd(const Turn& turn) {
  const Range own = Intersect(plan().SliceOf(turn.exchange.speaker.rank), plan().blocks);
  if (plan().blocks.begin + turn.block + 1 != own.end || !plan().IsLastStep(LastSequence(turn.group()))) return false;
  absl::MutexLock lock(&parts_.book_mutex);
  parts_.book.roster().End(turn.group());
  return true;
}

absl::Status Shard::Rewind(const BlockExchange& to, absl::Span<const float> values) {
  const Speaker& speaker = to.speaker;
  if (absl::Status status = parts_.attachments.CheckOpen(speaker); !status.ok()) return status;
  absl::StatusOr<uint64_t> index = plan().FindBlock(to.first, values.size());
  if (!index.ok()) return index.status();
  if (absl::Status status = CheckFinite(speaker.group, to.first, values); !status.ok()) return status;
  if (to.sequence < plan().job.first_step()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the values are of step ", to.sequence, ", and the groups of this generation begin at step ",
                     plan().job.first_step(), "; a block cannot be written back to before that"));
  }
  BlockTurns& at = blocks_[*index];
  absl::MutexLock lock(&at.mutex);
  if (closed()) return parts_.attachments.WhyClosed();
  absl::Status status = at.block.WriteBack(speaker.group, {speaker.incarnation, to.sequence}, values);
  if (status.ok()) parts_.updates.fetch_add(1, std::memory_order_release);
  return status;
}

absl::Status Shard::ApplyBlock(const BlockExchange& exchange, absl::Span<const float> values,
                               absl::Span<float> answer) {
  Turn turn;
  turn.exchange = exchange;
  turn.values = values;
  turn.answer = answer;
  if (!plan().turns_may_wait()) return *Begin(turn);
  BlockedThread thread;
  turn.done = [&thread](absl::Status status) {
    absl::MutexLock lock(&thread.mutex);
    thread.outcome = std::move(status);
    thread.changed.SignalAll();  // Under the mutex, because `thread` may be gone once that is free.
  };
  if (const std::optional<absl::Status> status = Begin(turn); status.has_value()) return *status;
  const uint64_t index = *plan().FindBlock(exchange.first, values.size());
  while (true) {
    absl::Time look_at;
    {
      absl::MutexLock lock(&blocks_[index].mutex);
      look_at = blocks_[index].look_at;
    }
    {
      absl::MutexLock lock(&thread.mutex);
      while (!thread.outcome.has_value() && parts_.clock->Now() < look_at) {
        parts_.clock->Wait(thread.changed, thread.mutex, look_at);
      }
      if (thread.outcome.has_value()) return *std::move(thread.outcome);
    }
    TurnEnds ends;
    LookAtBlock(index, ends);
    Finish(std::move(ends));
  }
}

absl::Duration Shard::until_look() const {
  const absl::Time next = parts_.looks.next();
  return next == absl::InfiniteFuture() ? absl::InfiniteDuration() : next - parts_.clock->Now();
}

void Shard::LookAgain() {
  TurnEnds ends;
  ends.changes_groups = true;
  Finish(std::move(ends));
}

void Shard::LookAtBlock(uint64_t index, TurnEnds& ends) {
  BlockTurns& at = blocks_[index];
  absl::MutexLock lock(&at.mutex);
  at.look_at = absl::InfiniteFuture();
  if (at.waiting.empty()) return;
  const absl::Time now = parts_.clock->Now();
  parts_.rule->traits().in_rounds ? rounds_.Look(now, at, ends) : singles_.Look(now, at, ends);
}

void Shard::LookAtAllBlocks(TurnEnds& ends) {
  const uint64_t look = parts_.looks.Begin();
  for (uint64_t i = 0; i < blocks(); ++i) LookAtBlock(i, ends);
  parts_.looks.End(look);
}

// Turns that end may change the groups, which may end other turns, and so on. The loop ends, because each pass but the
// first ends a turn, and a continuation that begins another turn has not been called yet.
void Shard::Finish(TurnEnds ends) {
  size_t checked = 0;
  while (checked < ends.turns.size() || ends.changes_groups) {
    for (; checked < ends.turns.size(); ++checked) {
      const auto& [turn, status] = ends.turns[checked];
      const bool is_last = status.ok() && plan().IsLastStep(turn->exchange.sequence);
      if (is_last && LeaveAtEnd(*turn)) ends.changes_groups = true;
    }
    if (std::exchange(ends.changes_groups, false) && plan().turns_may_wait()) LookAtAllBlocks(ends);
  }
  for (auto& [turn, status] : ends.turns) turn->done(std::move(status));
}

}  // namespace hooke
