// The exchanges of Shard: how a contribution is checked, applied alone, and answered. shard_rounds.cc and
// shard_waits.cc have the waits.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/finite.h"
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

}  // namespace

std::optional<absl::Status> Shard::Begin(Turn& turn) {
  const Speaker& speaker = turn.exchange.speaker;
  if (absl::Status status = CheckOpen(speaker); !status.ok()) return status;
  absl::StatusOr<uint64_t> index = FindBlock(turn.exchange.first, turn.values.size());
  if (!index.ok()) return index.status();
  if (absl::Status status = CheckExchange(turn.exchange, *index); !status.ok()) return status;
  turn.moderate = AllModerate(turn.values);
  if (!turn.moderate) {
    if (absl::Status status = CheckFinite(speaker.group, turn.exchange.first, turn.values); !status.ok()) return status;
  }
  turn.id = {speaker.incarnation, turn.exchange.sequence};
  turn.block = *index;
  Ends ends;
  // If the turn waits, another thread may already have ended it here, so it must not be touched any more.
  std::optional<absl::Status> status = ApplyTurn(turn, blocks_[*index], ends);
  if (status.has_value() && status->ok() && IsLastStep(turn.exchange.sequence) && LeaveAtEnd(turn)) {
    ends.changes_groups = true;
  }
  Finish(std::move(ends));
  return status;
}

absl::Status Shard::Rewind(const Exchange& to, absl::Span<const float> values) {
  const Speaker& speaker = to.speaker;
  if (absl::Status status = CheckOpen(speaker); !status.ok()) return status;
  absl::StatusOr<uint64_t> index = FindBlock(to.first, values.size());
  if (!index.ok()) return index.status();
  if (absl::Status status = CheckFinite(speaker.group, to.first, values); !status.ok()) return status;
  if (to.sequence < plan_.job.first_step()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the values are of step ", to.sequence, ", and the groups of this generation begin at step ",
                     plan_.job.first_step(), "; a block cannot be written back to before that"));
  }
  const ExchangeId id = {speaker.incarnation, to.sequence};
  Block& block = blocks_[*index];
  absl::MutexLock lock(&block.mutex);
  if (closed_) return Ended();
  ExchangeId& last = block.applied[speaker.group];
  if (id.incarnation < last.incarnation) return Replaced(speaker.group, id.incarnation, last.incarnation);
  if (id.incarnation == last.incarnation && !(id == last)) {
    return absl::FailedPreconditionError(absl::StrCat("start ", id.incarnation, " of group ", speaker.group,
                                                      " has exchanged the block at value ", to.first,
                                                      " already; a block can be written back only before that"));
  }
  std::copy(values.begin(), values.end(), block.values.begin());
  // An exchange of the earlier incarnation that is still on its way is refused from now on.
  last = id;
  block.seen[speaker.group] = ++block.updates;
  updates_.fetch_add(1, std::memory_order_release);
  return absl::OkStatus();
}

std::optional<absl::Status> Shard::ApplyTurn(Turn& turn, Block& block, Ends& ends) {
  const TimedLock lock(&block.mutex, *clock_, turn.contended);
  // The check is repeated here, because a last snapshot may have copied this block since CheckOpen.
  if (closed_) return Ended();
  const ExchangeId last = block.applied[turn.exchange.speaker.group];
  if (turn.id == last) return Repeat(turn, block, ends);
  if (absl::Status status = CheckOrder(turn, last); !status.ok()) return status;
  return rule_->traits().in_rounds ? ApplyInRound(turn, block, ends) : ApplyAtOnce(turn, block, ends);
}

bool Shard::IsLastStep(uint64_t sequence) const {
  const uint64_t per_epoch = plan_.job.steps_per_epoch();
  if (per_epoch > 0 && plan_.job.steps_total() > 0) return sequence >= plan_.job.steps_total();
  return per_epoch > 0 && sequence / per_epoch >= plan_.job.epochs();
}

double Shard::EpochBefore(uint64_t step) const {
  const uint64_t done = step - 1 - std::min(step - 1, plan_.job.first_step());
  const uint64_t per_epoch = std::max<uint64_t>(plan_.job.steps_per_epoch(), 1);
  return plan_.job.first_epoch() + static_cast<double>(done) / static_cast<double>(per_epoch);
}

// Ends the group in the roster after its last step, so that no group waits for it. A rank sends its last block last, so
// only that block is checked.
bool Shard::LeaveAtEnd(const Turn& turn) {
  const Speaker& speaker = turn.exchange.speaker;
  const Range own = Intersect(plan_.SliceOf(speaker.rank), plan_.blocks);
  if (plan_.blocks.begin + turn.block + 1 != own.end || !IsLastStep(LastSequence(speaker.group))) return false;
  absl::MutexLock lock(&book_mutex_);
  book_.roster().End(speaker.group);
  return true;
}

absl::Status Shard::CheckOpen(const Speaker& speaker) const {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = CheckSpeaker(speaker); !status.ok()) return status;
  if (closed_) return Ended();
  if (attach_.initialized) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("the center of job ", plan_.job_id, " has no values here yet; attach to it first"));
}

absl::Status Shard::CheckOrder(const Turn& turn, const ExchangeId& last) const {
  if (last < turn.id) return absl::OkStatus();
  const uint32_t group = turn.exchange.speaker.group;
  if (turn.id.incarnation < last.incarnation) {
    return Replaced(group, turn.id.incarnation, last.incarnation);
  }
  return absl::InvalidArgumentError(absl::StrCat("sequence ", turn.id.sequence, " of group ", group,
                                                 " comes after sequence ", last.sequence, " at value ",
                                                 turn.exchange.first, "; sequences grow within an incarnation"));
}

absl::Status Shard::CheckWaiting(const Turn& turn) const {
  if (closed_) return Ended();
  if (stopping_) return absl::UnavailableError("this parameter server is stopping; try again");
  return CheckSpeaker(turn.exchange.speaker);
}

std::optional<absl::Status> Shard::Repeat(Turn& turn, Block& block, Ends& ends) {
  if (rule_->traits().answers_center) return AnswerWithinBound(turn, block, ends);
  // No answer is kept if the server has restarted since, or if the answer has left the rank's window. The answer is
  // then zeros, which leave the group's values unchanged.
  if (!WindowOf(turn.exchange.speaker).Find(turn.id, turn.exchange.first, turn.answer)) {
    std::fill(turn.answer.begin(), turn.answer.end(), 0.0f);
  }
  return absl::OkStatus();
}

std::optional<absl::Status> Shard::ApplyAtOnce(Turn& turn, Block& block, Ends& ends) {
  const Contribution from = ContributionOf(turn, block);
  if (absl::Status status = Update({&from, 1}, 1, turn, block); !status.ok()) return status;
  block.applied[turn.exchange.speaker.group] = turn.id;
  if (rule_->traits().answers_center) {
    meter_.AppliedAlone(from.staleness);
    return AnswerWithinBound(turn, block, ends);
  }
  WindowOf(turn.exchange.speaker).Store(turn.id, turn.exchange.first, turn.answer);
  return absl::OkStatus();
}

// Returns whether the group's contribution is from an older center than the present one. False if the group has just
// begun. Such a group read the center outside of exchanges, so the shard does not know its version.
bool Shard::IsLate(const Turn& turn, const Block& block) const {
  const uint32_t group = turn.exchange.speaker.group;
  return block.applied[group].incarnation == turn.id.incarnation && block.seen[group] != block.updates;
}

uint64_t Shard::StepsFrom(const Turn& turn, const ExchangeId& last) const {
  // RoundBook::StepsFrom would return the same, but needs its mutex.
  if (last.incarnation == turn.id.incarnation) return last.sequence;
  absl::MutexLock lock(&book_mutex_);
  return book_.StepsFrom(turn.exchange.speaker.group, turn.id, last);
}

Contribution Shard::ContributionOf(const Turn& turn, const Block& block) const {
  const uint32_t group = turn.exchange.speaker.group;
  const uint64_t last = StepsFrom(turn, block.applied[group]);
  const uint64_t interval = std::max<uint64_t>(plan_.job.interval(), 1);
  Contribution from;
  from.group = group;
  from.sequence = turn.id.sequence;
  // A new incarnation may repeat steps that are in the block already. Then the contribution counts as one interval.
  from.steps = turn.id.sequence > last ? turn.id.sequence - last : interval;
  if (!plan_.job.group_samples().empty()) from.samples = plan_.job.group_samples(static_cast<int>(group));
  from.staleness = IsLate(turn, block) ? block.updates - block.seen[group] : 0;
  from.values = turn.values;
  return from;
}

absl::Status Shard::Update(absl::Span<const Contribution> from, size_t live, const Turn& turn, Block& block) {
  uint64_t furthest = 1;
  for (const Contribution& each : from) furthest = std::max(furthest, each.sequence);
  CenterBlock center;
  center.values = absl::MakeSpan(block.values);
  center.state = absl::MakeSpan(block.state);
  center.parameters = plan_.BlockParameters(plan_.blocks.begin + turn.block);
  center.update = block.updates + 1;
  center.epoch = EpochBefore(furthest);
  center.whole.groups = static_cast<uint32_t>(live);
  center.whole.interval = plan_.job.interval();
  if (rule_->traits().averages && turn.moderate && AllModerate(block.values)) {
    rule_->Apply(from, center, turn.answer);
  } else if (absl::Status status = ApplyWatched(from, center, turn); !status.ok()) {
    return status;
  }
  ++block.updates;
  // The update is counted after the change. So a snapshot that reads the old count may be written once more, but no
  // change is missed.
  updates_.fetch_add(1, std::memory_order_release);
  return absl::OkStatus();
}

// Applies the rule, and restores the block if the result is not finite. Even finite contributions can make the center
// infinite, which would spoil all groups for good. So the block is copied first. The copy is cheap: the block is in the
// cache, and an optimizer's step reads and writes more than the copy does.
absl::Status Shard::ApplyWatched(absl::Span<const Contribution> from, const CenterBlock& center,
                                 const Turn& turn) const {
  const std::vector<float> values(center.values.begin(), center.values.end());
  const std::vector<float> state(center.state.begin(), center.state.end());
  rule_->Apply(from, center, turn.answer);
  const bool good_answer = rule_->traits().answers_center || AllFinite(turn.answer);
  if (good_answer && AllFinite(center.values) && AllFinite(center.state)) return absl::OkStatus();
  const auto bad =
      std::find_if_not(center.values.begin(), center.values.end(), [](float value) { return std::isfinite(value); });
  const std::string what =
      bad != center.values.end()
          ? absl::StrCat("value ", turn.exchange.first + (bad - center.values.begin()), " ", *bad)
          : absl::StrCat("the state of the block at value ", turn.exchange.first, " infinite or not a number");
  std::copy(values.begin(), values.end(), center.values.begin());
  std::copy(state.begin(), state.end(), center.state.begin());
  constexpr size_t kNamed = 4;  // At most this many groups are named, because a gRPC status has little room.
  const auto name = [](std::string* out, const Contribution& each) { absl::StrAppend(out, each.group); };
  const std::string more = from.size() > kNamed ? absl::StrCat(" and ", from.size() - kNamed, " more") : "";
  return absl::InvalidArgumentError(
      absl::StrCat("what group ", absl::StrJoin(from.subspan(0, kNamed), " and group ", name), more,
                   " sent would make, in the center of job ", plan_.job_id, ", ", what,
                   "; the center stays as it was (has training diverged? lower the learning rate)"));
}

void Shard::AnswerWithCenter(const Turn& turn, Block& block) {
  std::copy(block.values.begin(), block.values.end(), turn.answer.begin());
  block.seen[turn.exchange.speaker.group] = block.updates;
}

}  // namespace hooke
