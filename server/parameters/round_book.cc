#include "server/parameters/round_book.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hooke {

RoundBook::RoundBook(const Options& options)
    : options_(options),
      roster_(options.groups),
      queues_(options.blocks, Queue(options.round)),
      places_(options.blocks > 0 ? size_t{options.groups} * options.slices : 0),
      dismissed_(options.groups),
      begun_(options.groups),
      come_(options.groups) {
  static_assert(sizeof(Queue) <= kBlockBytes);
  if (options_.blocks > 0 && options_.round.quorum == 0) roster_.ExpectAll();
}

bool RoundBook::Begin(uint32_t group, const ExchangeId& from) {
  if (begun_[group].id.incarnation == from.incarnation) return false;
  begun_[group] = {from, passes_};
  return true;
}

uint64_t RoundBook::StepsFrom(uint32_t group, const ExchangeId& id, const ExchangeId& last) const {
  if (last.incarnation == id.incarnation) return last.sequence;
  const ExchangeId& begun = begun_[group].id;
  return begun.incarnation == id.incarnation ? begun.sequence : last.sequence;
}

RoundBook::Decision RoundBook::Arrive(absl::Time now, const Arrival& arrival, const History& history) {
  const uint32_t group = arrival.from.group;
  roster_.Speak(group, arrival.id.sequence);
  Queue& queue = queues_[arrival.block];
  Place& place = PlaceOf(group, arrival.rank);
  const bool is_placed = place.id == arrival.id;
  const bool opens = !is_placed && arrival.first;
  Decision decision;
  if (IsToBeDropped(arrival, is_placed ? &place : nullptr)) {
    if (opens) place = {arrival.id, nullptr};
    decision.fate = Fate::kDropped;
    decision.reason = "the contribution is from an older center";
    return decision;
  }
  // A contribution of this group may still be queued for a broken stream. The group must count once.
  const bool replaces = queue.round.Has(group);
  if (replaces) Withdraw(arrival.block, group);
  queue.members.push_back({group, arrival.rank, arrival.id, opens, is_placed ? place.pass : nullptr});
  NotePass(queue.members.back().pass, queue);
  queue.round.Add(now, arrival.from);
  decision = Look(now, arrival.block, history);
  decision.replaces = replaces;
  return decision;
}

void RoundBook::Withdraw(uint64_t block, uint32_t group) {
  Queue& queue = queues_[block];
  if (!queue.round.Has(group)) return;
  queue.round.Withdraw(group);
  std::vector<Member> left;
  for (Member& each : queue.members) {
    if (each.group != group) left.push_back(std::move(each));
  }
  queue.members = std::move(left);
  queue.passes = {};
  for (const Member& each : queue.members) NotePass(each.pass, queue);
}

void RoundBook::NoteApplied(const ClosedRound& round) {
  Queue& queue = queues_[round.block];
  const std::shared_ptr<const Pass> opened = OpenPass(round);
  for (const Member& each : round.members) {
    if (each.opens) {
      PlaceOf(each.group, each.rank) = {each.id, opened};
    } else if (each.pass != nullptr) {
      queue.pass = std::max(queue.pass, each.pass->number);
    }
  }
  const std::shared_ptr<const Pass>& waited = opened != nullptr ? opened : round.pass;
  const uint64_t number = waited != nullptr ? waited->number : passes_;
  for (const uint32_t group : round.missing) {
    // Several ranks may have waited for the group at the same time. The group was dismissed once, in the first of their
    // passes.
    if (come_[group]) dismissed_[group] = roster_.Awaits(group) ? number : std::min(dismissed_[group], number);
    roster_.Dismiss(group);
  }
}

// If an exchange begins late, it is dropped as a whole. If other groups overtake an exchange, only its remaining blocks
// are dropped.
bool RoundBook::IsToBeDropped(const Arrival& arrival, const Place* place) const {
  if (!options_.drops_late) return false;
  if (place == nullptr) return arrival.late;
  return place->pass == nullptr || IsOver(*place->pass, queues_[arrival.block]);
}

RoundBook::Decision RoundBook::Look(absl::Time now, uint64_t block, const History& history) {
  const Queue& queue = queues_[block];
  Decision decision;
  for (const std::shared_ptr<const Pass>& pass : queue.passes) {
    RoundDecision each = DecideFor(pass.get(), queue, now);
    if (each.complete) {
      decision.fate = Fate::kClosed;
      decision.reason = each.reason;
      decision.round = Close(block, pass, std::move(each.missing), history);
      return decision;
    }
    decision.again = std::min(decision.again, each.again);
    if (pass == queue.passes.front()) decision.reason = each.reason;
  }
  return decision;
}

RoundDecision RoundBook::DecideFor(const Pass* pass, const Queue& queue, absl::Time now) const {
  if (pass == nullptr) return queue.round.Decide(now, roster_);
  if (IsOver(*pass, queue)) return queue.round.DecideAmong({}, 0, now, roster_);
  return queue.round.DecideAmong(pass->groups, AwaitedOf(*pass), now, roster_);
}

uint32_t RoundBook::AwaitedOf(const Pass& pass) const {
  if (pass.counted != roster_.changes()) {
    const auto awaits = [this](uint32_t group) { return roster_.Awaits(group); };
    pass.awaited = static_cast<uint32_t>(std::count_if(pass.groups.begin(), pass.groups.end(), awaits));
    pass.counted = roster_.changes();
  }
  return pass.awaited;
}

RoundBook::ClosedRound RoundBook::Close(uint64_t block, std::shared_ptr<const Pass> pass, std::vector<uint32_t> missing,
                                        const History& history) {
  Queue& queue = queues_[block];
  ClosedRound round;
  round.block = block;
  round.live = LiveGroups(queue, missing, history);
  round.missing = std::move(missing);
  round.pass = std::move(pass);
  round.contributions = queue.round.Take();
  round.members = std::exchange(queue.members, {});
  queue.passes = {};
  return round;
}

std::vector<uint32_t> RoundBook::LiveGroups(const Queue& queue, absl::Span<const uint32_t> missing,
                                            const History& history) const {
  std::vector<bool> is_live(options_.groups);
  uint64_t answered = history.updates;                     // The oldest version from which a member was trained.
  uint64_t before = std::numeric_limits<uint64_t>::max();  // The lowest PassBefore of a member that opens a pass.
  for (const Member& each : queue.members) {
    is_live[each.group] = true;
    answered = std::min(answered, history.seen[each.group]);
    if (each.opens) before = std::min(before, PassBefore(each));
  }
  for (const uint32_t group : missing) is_live[group] = come_[group];
  for (const std::shared_ptr<const Pass>& pass : queue.passes) {
    if (pass == nullptr) continue;
    for (const uint32_t group : pass->live) is_live[group] = true;
  }
  std::vector<uint32_t> live;
  for (uint32_t group = 0; group < options_.groups; ++group) {
    // Another rank of a member's group may have waited for a missing group and dismissed it. For this rank the missing
    // group is live, too.
    if (is_live[group] || history.seen[group] > answered || dismissed_[group] > before) live.push_back(group);
  }
  return live;
}

uint64_t RoundBook::PassBefore(const Member& opener) const {
  const Place& place = PlaceOf(opener.group, opener.rank);
  if (place.pass != nullptr && place.id.incarnation == opener.id.incarnation) return place.pass->number;
  const Begun& begun = begun_[opener.group];
  return begun.id.incarnation == opener.id.incarnation ? begun.pass : passes_;
}

std::shared_ptr<const RoundBook::Pass> RoundBook::OpenPass(const ClosedRound& round) {
  auto opened = std::make_shared<Pass>();
  for (const Member& each : round.members) {
    if (each.opens) opened->groups.push_back(each.group);
  }
  if (opened->groups.empty()) return nullptr;
  std::sort(opened->groups.begin(), opened->groups.end());
  opened->live = round.live;
  opened->number = ++passes_;
  opened->counted = std::numeric_limits<uint64_t>::max();  // Not counted yet.
  return opened;
}

void RoundBook::NotePass(const std::shared_ptr<const Pass>& pass, Queue& queue) {
  const auto at = std::find(queue.passes.begin(), queue.passes.end(), pass);
  if (at == queue.passes.end()) {
    queue.passes.insert(queue.passes.begin(), pass);
  } else {
    std::iter_swap(queue.passes.begin(), at);
  }
}

}  // namespace hooke
