#ifndef HOOKE_SERVER_PARAMETERS_SHARD_PARTS_H_
#define HOOKE_SERVER_PARAMETERS_SHARD_PARTS_H_

// The turns of all blocks of a shard share these objects. The functions here apply a turn to its block. The Shard owns
// the parts; RoundTurns and SingleTurns use them.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/center_rule.h"
#include "server/parameters/attachments.h"
#include "server/parameters/exchange_meter.h"
#include "server/parameters/look_schedule.h"
#include "server/parameters/round_book.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/turn.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

// Thread-safe.
struct ShardParts {
  // `by` is the rule of the plan `of`.
  ShardParts(ShardPlan of, std::unique_ptr<CenterRule> by, std::shared_ptr<WaitClock> wait_clock);

  // Returns what the turn contributes to its block. Takes book_mutex if the incarnation is new to the block.
  Contribution ContributionOf(const Turn& turn, const Block& block) const;
  // Applies the rule to the block of `turn`, and uses `turn`'s answer as scratch memory. `live` is the number of live
  // groups in rounds, else 1. Errors are those of Block::Apply.
  absl::Status Update(absl::Span<const Contribution> from, size_t live, const Turn& turn, Block& block);
  // Has the block looked at again at `when` or before.
  void LookBy(absl::Time when, BlockTurns& at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);

  const ShardPlan plan;
  const std::unique_ptr<CenterRule> rule;
  const std::shared_ptr<WaitClock> clock;
  ExchangeMeter meter;
  Attachments attachments;
  LookSchedule looks;
  // The changes of blocks that a snapshot must store. Each is counted after it was made. So a snapshot that reads the
  // old count may be written once more, but no change is missed.
  std::atomic<uint64_t> updates{0};

  // Guards what is decided about all groups and all blocks together. Last in the lock order.
  mutable absl::Mutex book_mutex;
  RoundBook book ABSL_GUARDED_BY(book_mutex);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SHARD_PARTS_H_
