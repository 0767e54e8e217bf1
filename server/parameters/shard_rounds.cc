// The waits of Shard: for a round, and for slower groups under a bound on staleness. RoundBook decides about rounds.
// Here threads wait for its decisions, and the thread that closes a round applies it.
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

absl::Status Shard::ApplyInRound(Turn& turn, Block& block) {
  if (absl::Status status = CheckWaiting(turn); !status.ok()) return status;
  const uint32_t group = turn.speaker.group;
  const RoundBook::Arrival arrival = {turn.block,          turn.speaker.rank,          turn.id, IsFirstOfItsPart(turn),
                                      IsLate(turn, block), ContributionOf(turn, block)};
  RoundBook::Decision decision;
  {
    absl::MutexLock lock(&book_mutex_);
    decision = book_.Arrive(clock_->Now(), arrival, {block.version, block.seen});
  }
  if (decision.fate == RoundBook::Fate::kDropped) {
    block.applied[group] = turn.id;
    updates_.fetch_add(1, std::memory_order_release);  // A snapshot must store that the exchange was dropped.
    AnswerWithCenter(turn, block);
    return absl::OkStatus();
  }
  if (decision.replaces) EndReplaced(turn, block);
  block.waiting.push_back(&turn);
  if (decision.fate == RoundBook::Fate::kClosed) return ApplyRound(decision.round, turn, block);
  return AwaitRound(std::move(decision), turn, block);
}

bool Shard::IsFirstOfItsPart(const Turn& turn) const {
  const Range slice = plan_.partition.SliceBlocks({turn.speaker.rank, plan_.job.ranks()});
  return OpensFragment(Intersect(slice, plan_.blocks), plan_.blocks.begin + turn.block, fragments());
}

// Waits until the round has an outcome for `turn`. The thread wakes when it has an outcome, when the book's time to
// look again has come, and when a group has come or gone.
absl::Status Shard::AwaitRound(RoundBook::Decision decision, Turn& turn, Block& block) {
  const absl::Time give_up = clock_->Now() + plan_.rule.round.grace + kRoundTimeout;
  while (true) {
    clock_->Wait(block.changed, block.mutex, std::min(decision.again, give_up));
    if (turn.outcome->has_value()) return **turn.outcome;
    absl::Status status = CheckWaiting(turn);
    if (status.ok()) {
      const absl::Time now = clock_->Now();
      {
        absl::MutexLock lock(&book_mutex_);
        decision = book_.Look(now, turn.block, {block.version, block.seen});
      }
      if (decision.fate == RoundBook::Fate::kClosed) return ApplyRound(decision.round, turn, block);
      if (now < give_up) continue;
      status = absl::UnavailableError(absl::StrCat("the round of the block at value ", turn.first,
                                                   " is not complete: ", decision.reason, "; try again"));
    }
    LeaveRound(turn, block);
    return status;
  }
}

absl::Status Shard::ApplyRound(const RoundBook::ClosedRound& round, Turn& turn, Block& block) {
  absl::Status status = Update(round.contributions, round.live.size(), turn, block);
  for (const Turn* each : block.waiting) {
    *each->outcome = status;
    if (!status.ok()) continue;
    block.applied[each->speaker.group] = each->id;
    // Answer all threads now, while the block is in this core's cache. Otherwise each thread would copy the block
    // itself, one after another under the mutex.
    AnswerWithCenter(*each, block);
  }
  // Frees the memory, because the memory of all blocks together would be large.
  block.waiting = std::vector<const Turn*>();
  turn.has_closed = true;
  if (!status.ok()) return status;
  turn.has_dismissed = !round.missing.empty();
  absl::MutexLock lock(&book_mutex_);
  book_.Settle(round);
  return absl::OkStatus();
}

// Ends an earlier turn of this group, because the book has replaced its contribution.
void Shard::EndReplaced(const Turn& by, Block& block) {
  const auto at = std::find_if(block.waiting.begin(), block.waiting.end(),
                               [&by](const Turn* other) { return other->speaker.group == by.speaker.group; });
  *(*at)->outcome = absl::UnavailableError(
      absl::StrCat("group ", by.speaker.group, " has sent the block at value ", by.first, " again on another stream"));
  block.waiting.erase(at);
  block.changed.SignalAll();
}

// Takes the turn's contribution out of the round. The other threads are woken, because the book may now have another
// time to look again.
void Shard::LeaveRound(const Turn& turn, Block& block) {
  block.waiting.erase(std::find(block.waiting.begin(), block.waiting.end(), &turn));
  if (block.waiting.empty()) block.waiting = std::vector<const Turn*>();
  block.changed.SignalAll();
  absl::MutexLock lock(&book_mutex_);
  book_.Withdraw(turn.block, turn.speaker.group);
}

// Waits until no awaited group is further behind at this block than the bound. A group that is still too far behind
// after the grace window is dismissed, so later exchanges do not wait for it.
//
// A thread that waits names one group that is behind, and only that group's exchanges wake it. If every arrival woke
// all threads, the cost of a block would grow with the cube of the number of groups.
absl::Status Shard::AwaitSlower(const Turn& turn, Block& block) {
  if (rule_->traits().staleness_bound == 0) return absl::OkStatus();
  std::vector<uint32_t>& awaited = block.awaited;
  if (std::find(awaited.begin(), awaited.end(), turn.speaker.group) != awaited.end()) block.changed.SignalAll();
  const absl::Time give_up = clock_->Now() + plan_.rule.round.grace;
  while (true) {
    if (absl::Status status = CheckWaiting(turn); !status.ok()) return status;
    const std::vector<uint32_t> behind = Behind(turn, block);
    if (behind.empty()) return absl::OkStatus();
    if (clock_->Now() >= give_up) {
      absl::MutexLock lock(&book_mutex_);
      for (const uint32_t group : behind) book_.roster().Dismiss(group);
      return absl::OkStatus();
    }
    const uint32_t named = FurthestBehind(behind, block.applied);
    awaited.push_back(named);
    clock_->Wait(block.changed, block.mutex, give_up);
    awaited.erase(std::find(awaited.begin(), awaited.end(), named));
  }
}

std::vector<uint32_t> Shard::Behind(const Turn& turn, const Block& block) {
  const ExchangeId* const applied = block.applied.data();
  absl::MutexLock lock(&book_mutex_);
  book_.roster().Speak(turn.speaker.group, turn.id.sequence);
  return book_.roster().Behind(turn.speaker.group, rule_->traits().staleness_bound,
                               [applied](uint32_t group) { return applied[group].sequence; });
}

}  // namespace hooke
