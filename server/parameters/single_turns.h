#ifndef HOOKE_SERVER_PARAMETERS_SINGLE_TURNS_H_
#define HOOKE_SERVER_PARAMETERS_SINGLE_TURNS_H_

// Serves the turns of a shard under rules that apply each exchange alone. The rule is applied at once. Only the answer
// may have to wait: under a bound on staleness, a group that is too far ahead waits for the slower ones.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/parameters/answer_window.h"
#include "server/parameters/shard_parts.h"
#include "server/parameters/turn.h"

namespace hooke {

// The caller has the mutex of the block, and calls the continuations of `ends` when it holds no lock any more.
class SingleTurns {
 public:
  // `shard` outlives the object.
  explicit SingleTurns(ShardParts* shard);

  // Applies a new exchange, and answers it. Returns its status, or nullopt if its answer waits.
  std::optional<absl::Status> Apply(Turn& turn, BlockTurns& at, TurnEnds& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);
  // Answers an exchange again that was applied last. Returns what Apply returns.
  std::optional<absl::Status> Repeat(Turn& turn, BlockTurns& at, TurnEnds& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);
  // Ends the turns of the block that need not wait any longer.
  void Look(absl::Time now, BlockTurns& at, TurnEnds& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex) {
    LookFor(std::nullopt, now, at, ends);
  }

 private:
  // Answers the turn with the center, at once or when it need not wait for slower groups any more. It waits until no
  // awaited group is further behind at this block than the bound. A group that is still too far behind after the grace
  // window is dismissed, so later exchanges do not wait for it.
  std::optional<absl::Status> AnswerWithinBound(Turn& turn, BlockTurns& at, TurnEnds& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);
  std::optional<absl::Status> AnswerUnlessHeld(absl::Time now, Turn& turn, Block& block);
  // Looks at the turns that wait for `group`, or at all of them.
  void LookFor(std::optional<uint32_t> group, absl::Time now, BlockTurns& at, TurnEnds& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex);
  // Returns the groups that this turn must wait for.
  std::vector<uint32_t> Behind(const Turn& turn, const Block& block);
  AnswerWindow& WindowOf(const Speaker& speaker) {
    return *windows_[size_t{speaker.group} * shard_.plan.slices() + speaker.rank];
  }

  ShardParts& shard_;
  // Indexed by group, then rank. Constant after construction. Empty under rules that answer with the center: a repeat
  // gets the present center, so no answers are kept.
  std::vector<std::unique_ptr<AnswerWindow>> windows_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SINGLE_TURNS_H_
