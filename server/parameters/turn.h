#ifndef HOOKE_SERVER_PARAMETERS_TURN_H_
#define HOOKE_SERVER_PARAMETERS_TURN_H_

// An exchange of one block while a shard has it, the block with its queue of such turns, and the ends of turns.
//
// An exchange that must wait is a Turn in its block's queue, not a thread. Whoever ends its wait answers it and calls
// its continuation. So no queue holds copies of values, and a turn that gives up leaves nothing behind.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/parameters/answer_window.h"
#include "server/parameters/attach.h"
#include "server/parameters/block.h"
#include "server/parameters/shard_plan.h"

namespace hooke {

struct BlockExchange {
  Speaker speaker;
  uint64_t sequence = 0;  // >= 1.
  uint64_t first = 0;
};

// An exchange of one block, for Shard::Begin.
class Turn {
 public:
  BlockExchange exchange;
  absl::Span<const float> values;
  absl::Span<float> answer;  // As long as `values`.
  // Needed if turns_may_wait of the plan. Called once, with the turn's status, if Begin has returned nullopt. The
  // caller holds no lock, and does not touch the turn afterwards. It may be any thread that uses the shard, so `done`
  // must not wait.
  std::function<void(absl::Status)> done;
  // If Begin has returned nullopt: when the turn began to wait, on the clock of the shard's meter.
  absl::Time queued;
  // Begin adds the time for which other turns held its block.
  absl::Duration contended;

  // Checks what the plan and the values alone decide. Begin calls it before anything else uses the turn.
  // INVALID_ARGUMENT as in Shard::Begin.
  absl::Status Prepare(const ShardPlan& plan);

 private:
  friend class RoundTurns;
  friend class Shard;
  friend struct ShardParts;
  friend class SingleTurns;

  uint32_t group() const { return exchange.speaker.group; }

  ExchangeId id;
  uint64_t block = 0;     // Index within the shard.
  bool moderate = false;  // The result of AllModerate(values) (algorithms/finite.h).
  absl::Time give_up;     // While it waits: when it ends if nothing has ended it before.
  uint32_t awaited = 0;   // While it waits under a bound on staleness: the group that is furthest behind.
};

// A block of a shard, and the turns that wait at it.
struct BlockTurns {
  // Lock order: Attachments, this mutex, then an AnswerWindow's, ShardParts::book_mutex or a LookSchedule's.
  mutable absl::Mutex mutex;
  Block block ABSL_GUARDED_BY(mutex);
  // In the order of arrival. In rounds: those whose contributions are in the book's queue.
  std::vector<Turn*> waiting ABSL_GUARDED_BY(mutex);
  // When this block must be looked at again; InfiniteFuture if no turn waits here.
  absl::Time look_at ABSL_GUARDED_BY(mutex) = absl::InfiniteFuture();
};

// The turns that have ended under a block's mutex. Their continuations are called when no mutex is held any more.
struct TurnEnds {
  std::vector<std::pair<Turn*, absl::Status>> turns;  // They have left their block's queue.
  // Whether groups have come or gone, so that turns of any block may have to wait no longer.
  bool changes_groups = false;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TURN_H_
