#include "server/parameters/round_turns.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hooke {

std::optional<absl::Status> RoundTurns::Apply(Turn& turn, BlockTurns& at, TurnEnds& ends) {
  const Speaker& speaker = turn.exchange.speaker;
  if (absl::Status status = shard_.attachments.CheckWaiting(speaker); !status.ok()) return status;
  const Contribution from = shard_.ContributionOf(turn, at.block);
  const RoundBook::Arrival arrival = {
      turn.block, speaker.rank, turn.id, shard_.plan.OpensExchange(speaker.rank, turn.block), from.staleness > 0, from};
  const absl::Time now = shard_.clock->Now();
  RoundBook::Decision decision;
  {
    absl::MutexLock lock(&shard_.book_mutex);
    decision = shard_.book.Arrive(now, arrival, {at.block.updates(), at.block.seen()});
  }
  if (decision.fate == RoundBook::Fate::kDropped) {
    at.block.NoteApplied(speaker.group, turn.id);
    shard_.updates.fetch_add(1, std::memory_order_release);  // A snapshot must store that the exchange was dropped.
    at.block.Answer(speaker.group, turn.answer);
    return absl::OkStatus();
  }
  if (decision.replaces) EndReplaced(turn, at, ends);
  at.waiting.push_back(&turn);
  if (decision.fate == RoundBook::Fate::kClosed) return ApplyRound(decision.round, &turn, at, ends);
  turn.queued = now;
  turn.give_up = now + shard_.plan.rule.round.grace + kTimeout;
  shard_.LookBy(std::min(decision.again, turn.give_up), at);
  return std::nullopt;
}

void RoundTurns::Repeat(const Turn& turn, BlockTurns& at) { at.block.Answer(turn.group(), turn.answer); }

void RoundTurns::Look(absl::Time now, BlockTurns& at, TurnEnds& ends) {
  const uint64_t index = at.waiting.front()->block;
  const auto leave = [&](Turn* turn, absl::Status why) {
    absl::MutexLock lock(&shard_.book_mutex);
    shard_.book.Withdraw(index, turn->group());
    ends.turns.emplace_back(turn, std::move(why));
  };
  const auto must_not_wait = [&](Turn* turn) {
    absl::Status status = shard_.attachments.CheckWaiting(turn->exchange.speaker);
    if (!status.ok()) leave(turn, status);
    return !status.ok();
  };
  std::vector<Turn*>& waiting = at.waiting;
  waiting.erase(std::remove_if(waiting.begin(), waiting.end(), must_not_wait), waiting.end());
  while (!waiting.empty()) {
    RoundBook::Decision decision;
    {
      absl::MutexLock lock(&shard_.book_mutex);
      decision = shard_.book.Look(now, index, {at.block.updates(), at.block.seen()});
    }
    if (decision.fate == RoundBook::Fate::kClosed) {
      ApplyRound(decision.round, nullptr, at, ends).IgnoreError();  // The turns have the status.
      return;
    }
    Turn* const first = waiting.front();  // All turns wait equally long, so the first one gives up first.
    if (now < first->give_up) {
      shard_.LookBy(std::min(decision.again, first->give_up), at);
      return;
    }
    leave(first, absl::UnavailableError(absl::StrCat("the round of the block at value ", first->exchange.first,
                                                     " is not complete: ", decision.reason, "; try again")));
    waiting.erase(waiting.begin());
  }
  waiting = std::vector<Turn*>();
}

absl::Status RoundTurns::ApplyRound(const RoundBook::ClosedRound& round, const Turn* own, BlockTurns& at,
                                    TurnEnds& ends) {
  absl::Status status = shard_.Update(round.contributions, round.live.size(), *at.waiting.front(), at.block);
  ends.turns.reserve(ends.turns.size() + at.waiting.size());
  for (Turn* each : at.waiting) {
    if (status.ok()) {
      at.block.NoteApplied(each->group(), each->id);
      // Answer all turns now, while the block is in this core's cache.
      at.block.Answer(each->group(), each->answer);
    }
    if (each != own) ends.turns.emplace_back(each, status);
  }
  // Frees the memory, because the memory of all blocks together would be large.
  at.waiting = std::vector<Turn*>();
  at.look_at = absl::InfiniteFuture();
  if (!status.ok()) return status;
  shard_.meter.AppliedRound();
  // Rounds of other blocks may be complete without the groups that this round has waited for in vain.
  if (!round.missing.empty()) ends.changes_groups = true;
  absl::MutexLock lock(&shard_.book_mutex);
  shard_.book.NoteApplied(round);
  return status;
}

void RoundTurns::EndReplaced(const Turn& by, BlockTurns& at, TurnEnds& ends) {
  const uint32_t group = by.group();
  const auto earlier = std::find_if(at.waiting.begin(), at.waiting.end(),
                                    [group](const Turn* other) { return other->group() == group; });
  ends.turns.emplace_back(
      *earlier, absl::UnavailableError(absl::StrCat("group ", group, " has sent the block at value ", by.exchange.first,
                                                    " again on another stream")));
  at.waiting.erase(earlier);
}

}  // namespace hooke
