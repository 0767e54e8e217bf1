#ifndef HOOKE_SERVER_PARAMETERS_ROUND_TURNS_H_
#define HOOKE_SERVER_PARAMETERS_ROUND_TURNS_H_

// Serves the turns of a shard under rules with rounds. RoundBook decides when a round closes. The thread that closes it
// applies the rule to the values of all its turns, and writes their answers.

#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/parameters/round_book.h"
#include "server/parameters/shard_parts.h"
#include "server/parameters/turn.h"

namespace hooke {

// The caller has the mutex of the block, and calls the continuations of `ends` when it holds no lock any more.
class RoundTurns {
 public:
  // A turn waits this long beyond the grace window for its round's quorum.
  static constexpr absl::Duration kTimeout = absl::Seconds(10);

  // `shard` outlives the object.
  explicit RoundTurns(ShardParts* shard) : shard_(*shard) {}

  // Takes a new exchange. Returns its status, or nullopt if it waits.
  std::optional<absl::Status> Apply(Turn& turn, BlockTurns& at, TurnEnds& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);
  // Answers an exchange again that was applied last.
  void Repeat(const Turn& turn, BlockTurns& at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);
  // Ends the turns of the block that need not wait any longer. At least one waits.
  void Look(absl::Time now, BlockTurns& at, TurnEnds& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);

 private:
  // Applies the rule to the round of the block's waiting turns, and answers them. After an error all of them get the
  // error. Center and state are then as before, but the round has ended. Returns the status. All turns but `own` are
  // added to `ends`.
  absl::Status ApplyRound(const RoundBook::ClosedRound& round, const Turn* own, BlockTurns& at, TurnEnds& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);
  // Ends an earlier turn of this group, because the book has replaced its contribution.
  void EndReplaced(const Turn& by, BlockTurns& at, TurnEnds& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);

  ShardParts& shard_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_ROUND_TURNS_H_
