#include "server/parameters/single_turns.h"

#include <algorithm>

namespace hooke {
namespace {

// Returns the group of `behind` with the fewest steps. That group is likely to be the last for which the caller waits.
uint32_t FurthestBehind(const std::vector<uint32_t>& behind, const Block& block) {
  const auto is_before = [&block](uint32_t a, uint32_t b) {
    return block.applied(a).sequence < block.applied(b).sequence;
  };
  return *std::min_element(behind.rbegin(), behind.rend(), is_before);
}

}  // namespace

SingleTurns::SingleTurns(ShardParts* shard) : shard_(*shard) {
  if (shard_.rule->traits().answers_center) return;
  for (uint64_t i = 0; i < uint64_t{shard_.plan.job.groups()} * shard_.plan.slices(); ++i) {
    windows_.push_back(std::make_unique<AnswerWindow>(shard_.plan.window_blocks));
  }
}

std::optional<absl::Status> SingleTurns::Apply(Turn& turn, BlockTurns& at, TurnEnds& ends) {
  const Contribution from = shard_.ContributionOf(turn, at.block);
  if (absl::Status status = shard_.Update({&from, 1}, 1, turn, at.block); !status.ok()) return status;
  at.block.NoteApplied(turn.group(), turn.id);
  if (shard_.rule->traits().answers_center) {
    shard_.meter.AppliedAlone(from.staleness);
    return AnswerWithinBound(turn, at, ends);
  }
  WindowOf(turn.exchange.speaker).Store(turn.id, turn.exchange.first, turn.answer);
  return absl::OkStatus();
}

std::optional<absl::Status> SingleTurns::Repeat(Turn& turn, BlockTurns& at, TurnEnds& ends) {
  if (shard_.rule->traits().answers_center) return AnswerWithinBound(turn, at, ends);
  // No answer is kept if the server has restarted since, or if the answer has left the rank's window. The answer is
  // then zeros, which leave the group's values unchanged.
  if (!WindowOf(turn.exchange.speaker).Find(turn.id, turn.exchange.first, turn.answer)) {
    std::fill(turn.answer.begin(), turn.answer.end(), 0.0f);
  }
  return absl::OkStatus();
}

std::optional<absl::Status> SingleTurns::AnswerWithinBound(Turn& turn, BlockTurns& at, TurnEnds& ends) {
  if (shard_.rule->traits().staleness_bound == 0) {
    at.block.Answer(turn.group(), turn.answer);
    return absl::OkStatus();
  }
  const absl::Time now = shard_.clock->Now();
  turn.queued = now;
  turn.give_up = now + shard_.plan.rule.round.grace;
  std::optional<absl::Status> status = AnswerUnlessHeld(now, turn, at.block);
  LookFor(turn.group(), now, at, ends);
  if (!status.has_value()) {
    at.waiting.push_back(&turn);
    shard_.LookBy(turn.give_up, at);
  }
  return status;
}

std::optional<absl::Status> SingleTurns::AnswerUnlessHeld(absl::Time now, Turn& turn, Block& block) {
  if (absl::Status status = shard_.attachments.CheckWaiting(turn.exchange.speaker); !status.ok()) return status;
  const std::vector<uint32_t> behind = Behind(turn, block);
  if (!behind.empty() && now < turn.give_up) {
    turn.awaited = FurthestBehind(behind, block);
    return std::nullopt;
  }
  if (!behind.empty()) {
    absl::MutexLock lock(&shard_.book_mutex);
    for (const uint32_t group : behind) shard_.book.roster().Dismiss(group);
  }
  block.Answer(turn.group(), turn.answer);
  return absl::OkStatus();
}

// A turn that waits names one group that is behind. An exchange of another group does not have the turn looked at. If
// every arrival had all turns looked at, the cost of a block would grow with the cube of the number of groups.
void SingleTurns::LookFor(std::optional<uint32_t> group, absl::Time now, BlockTurns& at, TurnEnds& ends) {
  const auto ended = [&](Turn* turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.mutex) {
    if (group.has_value() && turn->awaited != *group) return false;
    const std::optional<absl::Status> status = AnswerUnlessHeld(now, *turn, at.block);
    if (status.has_value()) ends.turns.emplace_back(turn, *status);
    return status.has_value();
  };
  std::vector<Turn*>& waiting = at.waiting;
  waiting.erase(std::remove_if(waiting.begin(), waiting.end(), ended), waiting.end());
  if (!waiting.empty()) {
    shard_.LookBy(waiting.front()->give_up, at);
  } else if (waiting.capacity() > 0) {
    waiting = std::vector<Turn*>();
    at.look_at = absl::InfiniteFuture();
  }
}

std::vector<uint32_t> SingleTurns::Behind(const Turn& turn, const Block& block) {
  absl::MutexLock lock(&shard_.book_mutex);
  shard_.book.roster().Speak(turn.group(), turn.id.sequence);
  return shard_.book.roster().Behind(turn.group(), shard_.rule->traits().staleness_bound,
                                     [&block](uint32_t each) { return block.applied(each).sequence; });
}

}  // namespace hooke
