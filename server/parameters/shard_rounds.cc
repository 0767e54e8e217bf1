// The part of Shard that makes turns wait: for a round, or under a bound on staleness for slower groups. RoundBook
// decides when a round closes, and the caller that closes it applies it. shard_waits.cc has deadlines and
// continuations.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/fragments.h"
#include "server/parameters/shard.h"

namespace hooke {
namespace {

// Returns the group of `behind` with the fewest steps. That group is likely to be the last for which the caller waits.
uint32_t FurthestBehind(const std::vector<uint32_t>& behind, const std::vector<ExchangeId>& applied) {
  const auto is_before = [&applied](uint32_t a, uint32_t b) { return applied[a].sequence < applied[b].sequence; };
  return *std::min_element(behind.rbegin(), behind.rend(), is_before);
}

}  // namespace

std::optional<absl::Status> Shard::ApplyInRound(Turn& turn, Block& block, Ends& ends) {
  if (absl::Status status = CheckWaiting(turn); !status.ok()) return status;
  const Speaker& speaker = turn.exchange.speaker;
  const RoundBook::Arrival arrival = {
      turn.block, speaker.rank, turn.id, BeginsAnExchange(turn), IsLate(turn, block), ContributionOf(turn, block)};
  const absl::Time now = clock_->Now();
  RoundBook::Decision decision;
  {
    absl::MutexLock lock(&book_mutex_);
    decision = book_.Arrive(now, arrival, {block.updates, block.seen});
  }
  if (decision.fate == RoundBook::Fate::kDropped) {
    block.applied[speaker.group] = turn.id;
    updates_.fetch_add(1, std::memory_order_release);  // A snapshot must store that the exchange was dropped.
    AnswerWithCenter(turn, block);
    return absl::OkStatus();
  }
  if (decision.replaces) EndReplaced(turn, block, ends);
  block.waiting.push_back(&turn);
  if (decision.fate == RoundBook::Fate::kClosed) return ApplyRound(decision.round, &turn, block, ends);
  turn.queued = now;
  turn.give_up = now + plan_.rule.round.grace + kRoundTimeout;
  LookAgainBy(std::min(decision.again, turn.give_up), block);
  return std::nullopt;
}

bool Shard::BeginsAnExchange(const Turn& turn) const {
  const Range slice = plan_.SliceOf(turn.exchange.speaker.rank);
  return OpensFragment(Intersect(slice, plan_.blocks), plan_.blocks.begin + turn.block, fragments());
}

void Shard::LookAtRound(absl::Time now, uint64_t index, Block& block, Ends& ends) {
  const auto leave = [&](Turn* turn, absl::Status why) {
    absl::MutexLock lock(&book_mutex_);
    book_.Withdraw(index, turn->exchange.speaker.group);
    ends.turns.emplace_back(turn, std::move(why));
  };
  const auto must_not_wait = [&](Turn* turn) {
    absl::Status status = CheckWaiting(*turn);
    if (!status.ok()) leave(turn, status);
    return !status.ok();
  };
  std::vector<Turn*>& waiting = block.waiting;
  waiting.erase(std::remove_if(waiting.begin(), waiting.end(), must_not_wait), waiting.end());
  while (!waiting.empty()) {
    RoundBook::Decision decision;
    {
      absl::MutexLock lock(&book_mutex_);
      decision = book_.Look(now, index, {block.updates, block.seen});
    }
    if (decision.fate == RoundBook::Fate::kClosed) {
      ApplyRound(decision.round, nullptr, block, ends).IgnoreError();  // The turns have the status.
      return;
    }
    Turn* const first = waiting.front();  // All turns wait equally long, so the first one gives up first.
    if (now < first->give_up) {
      LookAgainBy(std::min(decision.again, first->give_up), block);
      return;
    }
    leave(first, absl::UnavailableError(absl::StrCat("the round of the block at value ", first->exchange.first,
                                                     " is not complete: ", decision.reason, "; try again")));
    waiting.erase(waiting.begin());
  }
  waiting = std::vector<Turn*>();
}

absl::Status Shard::ApplyRound(const RoundBook::ClosedRound& round, const Turn* own, Block& block, Ends& ends) {
  absl::Status status = Update(round.contributions, round.live.size(), *block.waiting.front(), block);
  ends.turns.reserve(ends.turns.size() + block.waiting.size());
  for (Turn* each : block.waiting) {
    if (status.ok()) {
      block.applied[each->exchange.speaker.group] = each->id;
      // Answer all turns now, while the block is in this core's cache.
      AnswerWithCenter(*each, block);
    }
    if (each != own) ends.turns.emplace_back(each, status);
  }
  // Frees the memory, because the memory of all blocks together would be large.
  block.waiting = std::vector<Turn*>();
  block.look_at = absl::InfiniteFuture();
  if (!status.ok()) return status;
  meter_.AppliedRound();
  // Rounds of other blocks may be complete without the groups that this round has waited for in vain.
  if (!round.missing.empty()) ends.changes_groups = true;
  absl::MutexLock lock(&book_mutex_);
  book_.NoteApplied(round);
  return status;
}

// Ends an earlier turn of this group, because the book has replaced its contribution.
void Shard::EndReplaced(const Turn& by, Block& block, Ends& ends) {
  const uint32_t group = by.exchange.speaker.group;
  const auto at = std::find_if(block.waiting.begin(), block.waiting.end(),
                               [group](const Turn* other) { return other->exchange.speaker.group == group; });
  ends.turns.emplace_back(*at, absl::UnavailableError(absl::StrCat("group ", group, " has sent the block at value ",
                                                                   by.exchange.first, " again on another stream")));
  block.waiting.erase(at);
}

// The turn waits until no awaited group is further behind at this block than the bound. A group that is still too far
// behind after the grace window is dismissed, so later exchanges do not wait for it.
std::optional<absl::Status> Shard::AnswerWithinBound(Turn& turn, Block& block, Ends& ends) {
  if (rule_->traits().staleness_bound == 0) {
    AnswerWithCenter(turn, block);
    return absl::OkStatus();
  }
  const absl::Time now = clock_->Now();
  turn.queued = now;
  turn.give_up = now + plan_.rule.round.grace;
  std::optional<absl::Status> status = AnswerUnlessHeld(now, turn, block);
  LookAtHeld(now, turn.exchange.speaker.group, block, ends);
  if (!status.has_value()) {
    block.held.push_back(&turn);
    LookAgainBy(turn.give_up, block);
  }
  return status;
}

std::optional<absl::Status> Shard::AnswerUnlessHeld(absl::Time now, Turn& turn, Block& block) {
  if (absl::Status status = CheckWaiting(turn); !status.ok()) return status;
  const std::vector<uint32_t> behind = Behind(turn, block);
  if (!behind.empty() && now < turn.give_up) {
    turn.awaited = FurthestBehind(behind, block.applied);
    return std::nullopt;
  }
  if (!behind.empty()) {
    absl::MutexLock lock(&book_mutex_);
    for (const uint32_t group : behind) book_.roster().Dismiss(group);
  }
  AnswerWithCenter(turn, block);
  return absl::OkStatus();
}

// A held turn names one group that is behind. An exchange of another group does not have the turn looked at. If every
// arrival had all turns looked at, the cost of a block would grow with the cube of the number of groups.
void Shard::LookAtHeld(absl::Time now, std::optional<uint32_t> group, Block& block, Ends& ends) {
  const auto ended = [&](Turn* turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex) {
    if (group.has_value() && turn->awaited != *group) return false;
    const std::optional<absl::Status> status = AnswerUnlessHeld(now, *turn, block);
    if (status.has_value()) ends.turns.emplace_back(turn, *status);
    return status.has_value();
  };
  std::vector<Turn*>& held = block.held;
  held.erase(std::remove_if(held.begin(), held.end(), ended), held.end());
  if (!held.empty()) {
    LookAgainBy(held.front()->give_up, block);
  } else if (held.capacity() > 0) {
    held = std::vector<Turn*>();
    block.look_at = absl::InfiniteFuture();
  }
}

std::vector<uint32_t> Shard::Behind(const Turn& turn, const Block& block) {
  const ExchangeId* const applied = block.applied.data();
  const uint32_t group = turn.exchange.speaker.group;
  absl::MutexLock lock(&book_mutex_);
  book_.roster().Speak(group, turn.id.sequence);
  return book_.roster().Behind(group, rule_->traits().staleness_bound,
                               [applied](uint32_t each) { return applied[each].sequence; });
}

}  // namespace hooke
