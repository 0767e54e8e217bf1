// How turns of Shard wait: deadlines, continuations, and threads that would rather block. shard_rounds.cc has what they
// wait for.
#include <algorithm>
#include <utility>

#include "clocks/steady_condition.h"
#include "server/parameters/shard.h"

namespace hooke {
namespace {

// The wait of a thread in ApplyBlock.
struct BlockedThread {
  absl::Mutex mutex;
  SteadyCondition changed;
  std::optional<absl::Status> outcome ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::Status Shard::ApplyBlock(const Exchange& exchange, absl::Span<const float> values, absl::Span<float> answer) {
  Turn turn;
  turn.exchange = exchange;
  turn.values = values;
  turn.answer = answer;
  if (!MayWait()) return *Begin(turn);
  BlockedThread thread;
  turn.done = [&thread](absl::Status status) {
    absl::MutexLock lock(&thread.mutex);
    thread.outcome = std::move(status);
    thread.changed.SignalAll();  // Under the mutex, because `thread` may be gone once that is free.
  };
  if (const std::optional<absl::Status> status = Begin(turn); status.has_value()) return *status;
  const uint64_t block = *FindBlock(exchange.first, values.size());
  absl::Time look_at = LookAt(block);
  while (true) {
    {
      absl::MutexLock lock(&thread.mutex);
      while (!thread.outcome.has_value() && clock_->Now() < look_at) {
        clock_->Wait(thread.changed, thread.mutex, look_at);
      }
      if (thread.outcome.has_value()) return *std::move(thread.outcome);
    }
    look_at = LookAndFinish(block);
  }
}

void Shard::LookAgain() {
  Ends ends;
  ends.changes_groups = true;
  Finish(std::move(ends));
}

absl::Duration Shard::until_look() const {
  absl::MutexLock lock(&look_mutex_);
  return look_at_ == absl::InfiniteFuture() ? absl::InfiniteDuration() : look_at_ - clock_->Now();
}

absl::Time Shard::LookAt(uint64_t index) const {
  absl::MutexLock lock(&blocks_[index].mutex);
  return blocks_[index].look_at;
}

absl::Time Shard::LookAndFinish(uint64_t index) {
  Ends ends;
  LookAtBlock(index, ends);
  Finish(std::move(ends));
  return LookAt(index);
}

void Shard::LookAgainBy(absl::Time when, Block& block) {
  block.look_at = std::min(block.look_at, when);
  absl::MutexLock lock(&look_mutex_);
  look_at_ = std::min(look_at_, block.look_at);
  scheduled_ = std::min(scheduled_, block.look_at);
}

void Shard::LookAtBlock(uint64_t index, Ends& ends) {
  Block& block = blocks_[index];
  absl::MutexLock lock(&block.mutex);
  block.look_at = absl::InfiniteFuture();
  if (block.waiting.empty() && block.held.empty()) return;
  const absl::Time now = clock_->Now();
  LookAtRound(now, index, block, ends);
  LookAtHeld(now, std::nullopt, block, ends);
}

// until_look keeps its time until the look is over, and so never misses a turn. If several threads look at the same
// time, the last one to begin has seen all blocks after the others have begun, and sets the time.
void Shard::LookAtAllBlocks(Ends& ends) {
  uint64_t look = 0;
  {
    absl::MutexLock lock(&look_mutex_);
    look = ++looks_;
    scheduled_ = absl::InfiniteFuture();
  }
  for (uint64_t i = 0; i < blocks(); ++i) LookAtBlock(i, ends);
  absl::MutexLock lock(&look_mutex_);
  if (look == looks_) look_at_ = scheduled_;
}

// Turns that end may change the groups, which may end other turns, and so on. The loop ends, because each pass but the
// first ends a turn, and a continuation that begins another turn has not been called yet.
void Shard::Finish(Ends ends) {
  size_t checked = 0;
  while (checked < ends.turns.size() || ends.changes_groups) {
    for (; checked < ends.turns.size(); ++checked) {
      const auto& [turn, status] = ends.turns[checked];
      const bool is_last = status.ok() && IsLastStep(turn->exchange.sequence);
      if (is_last && LeaveAtEnd(*turn)) ends.changes_groups = true;
    }
    if (std::exchange(ends.changes_groups, false) && MayWait()) LookAtAllBlocks(ends);
  }
  for (auto& [turn, status] : ends.turns) turn->done(std::move(status));
}

}  // namespace hooke
