// The rounds of Shard: which groups wait for each other at a block, when a round is complete, and how late or missing
// groups are treated.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/fragments.h"
#include "server/parameters/shard.h"

namespace hooke {

absl::Status Shard::ApplyInRound(const Turn& turn, Block& block) {
  const uint32_t group = turn.speaker.group;
  {
    absl::MutexLock lock(&roster_mutex_);
    roster_.Speak(group, turn.id.sequence);
  }
  if (IsToBeDropped(turn, block)) {
    if (turn.opens) KeepPlace(turn, nullptr);
    block.applied[group] = turn.id;
    updates_.fetch_add(1, std::memory_order_release);  // A snapshot must store that the exchange was dropped.
    AnswerWithCenter(turn, block);
    return absl::OkStatus();
  }
  // A thread with this group's values may still wait here for a broken stream. The group's values must count once.
  for (const Turn* other : std::vector<const Turn*>(block.waiting)) {
    if (other->speaker.group == group) LeaveRound(*other, block);
  }
  const bool decides_for_all = std::all_of(block.waiting.begin(), block.waiting.end(),
                                           [&turn](const Turn* other) { return InSamePass(*other, turn); });
  block.waiting.push_back(&turn);
  block.round->Add(clock_->Now(), ContributionOf(turn, block));
  // Threads that wait for the same groups would make the decision that this thread is about to make, so they are not
  // woken. Waking all threads at each arrival would cost the cube of the number of groups.
  if (!decides_for_all) block.changed.SignalAll();
  absl::Status status = AwaitRound(turn, block);
  if (!status.ok()) LeaveRound(turn, block);
  return status;
}

absl::Status Shard::AwaitRound(const Turn& turn, Block& block) {
  const absl::Time give_up = clock_->Now() + plan_.rule.round.grace + kRoundTimeout;
  while (true) {
    if (turn.outcome->has_value()) return **turn.outcome;
    if (block.applied[turn.speaker.group] == turn.id) {  // Its repeat on another stream was applied.
      AnswerWithCenter(turn, block);
      return absl::OkStatus();
    }
    if (absl::Status status = CheckWaiting(turn); !status.ok()) return status;
    if (std::find(block.waiting.begin(), block.waiting.end(), &turn) == block.waiting.end()) {
      return absl::UnavailableError(absl::StrCat("group ", turn.speaker.group, " has sent the block at value ",
                                                 turn.first, " again on another stream"));
    }
    const absl::Time now = clock_->Now();
    const RoundDecision decision = DecideRound(turn, block, now);
    if (decision.complete) return CompleteRound(turn, decision, block);
    if (now >= give_up) {
      return absl::UnavailableError(absl::StrCat("the round of the block at value ", turn.first,
                                                 " is not complete: ", decision.reason, "; try again"));
    }
    clock_->Wait(block.changed, block.mutex, std::min(decision.again, give_up));
  }
}

absl::Status Shard::CompleteRound(const Turn& turn, const RoundDecision& decision, Block& block) {
  std::vector<uint32_t> live = LiveGroups(decision, block);
  absl::Status status = Update(block.round->contributions(), live.size(), turn, block);
  if (!status.ok()) {
    for (const Turn* each : block.waiting) *each->outcome = status;
    EndRound(block);
    return status;
  }
  const std::shared_ptr<const Pass> opened = OpenPass(block, std::move(live));
  for (const Turn* each : block.waiting) {
    block.applied[each->speaker.group] = each->id;
    // Answer all threads now, while the block is in this core's cache. Otherwise each thread would copy the block
    // itself, one after another under the mutex.
    AnswerWithCenter(*each, block);
    *each->outcome = absl::OkStatus();
    if (each->opens) {
      KeepPlace(*each, opened);
    } else if (each->place.has_value() && each->place->pass != nullptr) {
      block.pass = std::max(block.pass, each->place->pass->number);
    }
  }
  EndRound(block);
  DismissMissing(turn, decision, opened.get());
  return absl::OkStatus();
}

void Shard::EndRound(Block& block) {
  block.waiting = std::vector<const Turn*>();  // Frees the memory, which over all blocks is much.
  block.round->Clear();
  block.changed.SignalAll();
}

// Returns the groups that train, ascending. These are the groups of the round, those that it waited for in vain, and
// those that were in other rounds since this round's groups had their last answers. For a later block of an exchange,
// they include the groups that were live at its first block. A group that is expected but has never come has trained
// nothing, so it is not live.
std::vector<uint32_t> Shard::LiveGroups(const RoundDecision& decision, const Block& block) const {
  std::vector<bool> is_live(plan_.job.groups());
  uint64_t answered = block.version;  // The oldest center from which a group of the round has trained.
  for (const Contribution& each : block.round->contributions()) {
    is_live[each.group] = true;
    answered = std::min(answered, block.seen[each.group]);
  }
  for (const uint32_t group : decision.missing) is_live[group] = HasCome(group);
  for (uint32_t group = 0; group < is_live.size(); ++group) {
    if (block.seen[group] > answered) is_live[group] = true;
  }
  absl::MutexLock lock(&roster_mutex_);
  for (const Turn* each : block.waiting) {
    if (each->place.has_value()) {
      if (each->place->pass == nullptr) continue;
      for (const uint32_t group : each->place->pass->live) is_live[group] = true;
    } else if (each->opens) {
      // Another rank of this group may have waited for a missing group and dismissed it. For this rank the missing
      // group is live, too.
      const uint64_t before = PassBefore(*each);
      for (uint32_t group = 0; group < is_live.size(); ++group) {
        if (dismissed_[group] > before) is_live[group] = true;
      }
    }
  }
  std::vector<uint32_t> live;
  for (uint32_t group = 0; group < is_live.size(); ++group) {
    if (is_live[group]) live.push_back(group);
  }
  return live;
}

// Returns the number of the pass of this rank's previous exchange; after a restart, of the last pass before it.
uint64_t Shard::PassBefore(const Turn& opener) const {
  const Place& place = places_[SeatOf(opener.speaker)];
  if (place.pass != nullptr && place.id.incarnation == opener.id.incarnation) return place.pass->number;
  const Begun& begun = begun_[opener.speaker.group];
  return begun.id.incarnation == opener.id.incarnation ? begun.pass : passes_;
}

// Opens a pass for the waiting groups whose exchange starts at this block. Returns null if there are none.
std::shared_ptr<const Shard::Pass> Shard::OpenPass(const Block& block, std::vector<uint32_t> live) {
  auto opened = std::make_shared<Pass>();
  for (const Turn* each : block.waiting) {
    if (each->opens) opened->groups.push_back(each->speaker.group);
  }
  if (opened->groups.empty()) return nullptr;
  std::sort(opened->groups.begin(), opened->groups.end());
  opened->live = std::move(live);
  absl::MutexLock lock(&roster_mutex_);
  opened->number = ++passes_;
  return opened;
}

void Shard::DismissMissing(const Turn& turn, const RoundDecision& decision, const Pass* opened) {
  if (opened == nullptr && turn.place.has_value()) opened = turn.place->pass.get();
  absl::MutexLock lock(&roster_mutex_);
  const uint64_t pass = opened != nullptr ? opened->number : passes_;
  for (const uint32_t group : decision.missing) {
    // Several ranks may have waited for the group at the same time. It was dismissed once, in the first of their
    // passes.
    if (HasCome(group)) dismissed_[group] = roster_.Awaits(group) ? pass : std::min(dismissed_[group], pass);
    roster_.Dismiss(group);
  }
}

void Shard::LeaveRound(const Turn& turn, Block& block) {
  const auto at = std::find(block.waiting.begin(), block.waiting.end(), &turn);
  if (at == block.waiting.end()) return;
  block.waiting.erase(at);
  if (block.waiting.empty()) block.waiting = std::vector<const Turn*>();
  block.round->Withdraw(turn.speaker.group);
  block.changed.SignalAll();
}

void Shard::FindPlace(Turn& turn) const {
  const Range slice = plan_.partition.SliceBlocks({turn.speaker.rank, plan_.job.ranks()});
  absl::MutexLock lock(&roster_mutex_);
  const Place& place = places_[SeatOf(turn.speaker)];
  if (place.id == turn.id) {
    turn.place = place;
  } else {
    turn.opens = OpensFragment(Intersect(slice, plan_.blocks), plan_.blocks.begin + turn.block, fragments());
  }
}

void Shard::KeepPlace(const Turn& turn, std::shared_ptr<const Pass> pass) {
  absl::MutexLock lock(&roster_mutex_);
  places_[SeatOf(turn.speaker)] = {turn.id, std::move(pass)};
}

bool Shard::InSamePass(const Turn& one, const Turn& other) {
  if (!one.place.has_value() || !other.place.has_value()) return one.place.has_value() == other.place.has_value();
  return one.place->pass == other.place->pass;
}

bool Shard::IsLeftBehind(const Turn& turn, const Block& block) const {
  return turn.place.has_value() && turn.place->pass != nullptr && block.pass >= turn.place->pass->number;
}

// True for gradients of an older center, under rules that drop them. An exchange that begins late is dropped as a
// whole. If other groups overtake an exchange, only its remaining blocks are dropped.
bool Shard::IsToBeDropped(const Turn& turn, const Block& block) const {
  if (!rule_->traits().drops_late) return false;
  if (!turn.place.has_value()) return IsLate(turn, block);
  return turn.place->pass == nullptr || IsLeftBehind(turn, block);
}

RoundDecision Shard::DecideRound(const Turn& turn, const Block& block, absl::Time now) const {
  absl::MutexLock lock(&roster_mutex_);
  if (!turn.place.has_value()) return block.round->Decide(now, roster_);
  // This turn's pass has had its round here, so no other group will come.
  if (IsLeftBehind(turn, block)) return block.round->DecideAmong({}, now, roster_);
  return block.round->DecideAmong(turn.place->pass->groups, now, roster_);
}

}  // namespace hooke
