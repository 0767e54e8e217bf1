#include "server/parameters/shard.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "algorithms/fragments.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(ShardPlan plan, std::shared_ptr<WaitClock> clock) {
  return Make(std::move(plan), std::move(clock), Memory::kOfItsOwn);
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Make(ShardPlan plan, std::shared_ptr<WaitClock> clock, Memory values) {
  absl::StatusOr<std::unique_ptr<CenterRule>> rule = MakeCenterRule(plan.rule.options);
  if (!rule.ok()) return rule.status();
  const std::string too_large =
      absl::StrCat("this server's machine has no memory for the shard of job ", plan.job_id, ", ", plan.memory_bytes,
                   " bytes; lower --max-center-bytes, add servers or add memory");
  // A peer's numbers decide how much memory is allocated here, so the allocation may fail.
  try {
    std::unique_ptr<Shard> shard(new Shard(std::move(plan), *std::move(rule), std::move(clock)));
    for (uint64_t i = 0; i < shard->blocks(); ++i) {
      BlockTurns& at = shard->blocks_[i];
      absl::MutexLock lock(&at.mutex);
      if (values == Memory::kOfItsOwn) at.block.MakeValues();
      if (values != Memory::kOfAnother) at.block.MakeState(shard->plan().rule.traits.state_values);
    }
    return shard;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(too_large);
  }
}

Shard::Shard(ShardPlan of, std::unique_ptr<CenterRule> rule, std::shared_ptr<WaitClock> clock)
    : parts_(std::move(of), std::move(rule), std::move(clock)),
      blocks_(std::make_unique<BlockTurns[]>(blocks())),
      rounds_(&parts_),
      singles_(&parts_) {
  static_assert(sizeof(BlockTurns) + RoundBook::kBlockBytes <= kBlockObjectBytes, "the plan counts them");
  for (uint64_t i = 0; i < blocks(); ++i) {
    const Range range = BlockRange(i);
    const uint64_t parameters = plan().BlockParameters(plan().blocks.begin + i);
    absl::MutexLock lock(&blocks_[i].mutex);
    blocks_[i].block = Block({range.begin, range.size(), parameters}, plan().job.groups(), plan().job.first_step());
  }
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Succeed(ShardPlan plan, Shard& before) {
  const bool same_state = plan.rule.traits.state_values == before.plan().rule.traits.state_values;
  absl::StatusOr<std::unique_ptr<Shard>> made =
      Make(std::move(plan), before.parts_.clock, same_state ? Memory::kOfAnother : Memory::kValuesOfAnother);
  if (made.ok()) (*made)->TakeOver(before);
  return made;
}

// Once `before` is closed, none of its turns changes a block, and none of its groups ends. Nothing here can fail then.
void Shard::TakeOver(Shard& before) {
  const bool same_state = plan().rule.traits.state_values == before.plan().rule.traits.state_values;
  before.parts_.attachments.Close(plan().job.first_incarnation());
  before.LookAgain();
  for (uint64_t i = 0; i < blocks(); ++i) {
    BlockCopy block;
    {
      absl::MutexLock lock(&before.blocks_[i].mutex);
      block = before.blocks_[i].block.HandOver();
    }
    absl::MutexLock lock(&blocks_[i].mutex);
    blocks_[i].block.GoOn(std::move(block), same_state);
  }
  parts_.updates.store(before.updates() + 1, std::memory_order_release);  // A snapshot must store the generation.
  parts_.meter.AddCounts(before.parts_.meter.Read());
  served_ = before.served_;
  parts_.attachments.GoOn(before.parts_.attachments);
}

absl::StatusOr<Shard::Attached> Shard::Attach(absl::Time now, const Speaker& speaker, absl::Duration lease) {
  absl::StatusOr<Attachments::Answer> answer = parts_.attachments.Attach(now, speaker, lease);
  if (!answer.ok()) return answer.status();
  const Attached attached = {*std::move(answer), LastSequence(speaker.group)};
  bool begins = false;
  {
    absl::MutexLock lock(&parts_.book_mutex);
    parts_.book.NoteCome(speaker.group);
    if (attached.answer == AttachAnswer::kReady && blocks() > 0) {
      // A group also attaches after its last step, to see whether that step is saved. No group may wait for it then.
      const bool ended = plan().IsLastStep(attached.last_sequence) || parts_.attachments.HasEnded(speaker);
      if (!ended) parts_.book.roster().Enter(speaker.group, attached.last_sequence);
      begins = parts_.book.Begin(speaker.group, {speaker.incarnation, attached.last_sequence});
    }
  }
  // The group is about to read the center.
  for (uint64_t i = 0; begins && i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    blocks_[i].block.NoteSeen(speaker.group);
  }
  LookAgain();  // Turns of an earlier incarnation may be waiting, and must end.
  return attached;
}

absl::Status Shard::EndGroup(const Speaker& speaker, bool stops) {
  if (absl::Status status = parts_.attachments.End(speaker, stops); !status.ok()) return status;
  {
    absl::MutexLock lock(&parts_.book_mutex);
    parts_.book.roster().End(speaker.group);
  }
  LookAgain();  // Rounds may be complete without the group.
  return absl::OkStatus();
}

absl::StatusOr<Shard::Pace> Shard::TellPace(absl::Time now, const Speaker& speaker, double steps_per_second) {
  if (!(std::isfinite(steps_per_second) && steps_per_second >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps_per_second is ", steps_per_second, "; a finite number of at least 0 is allowed"));
  }
  if (absl::Status status = parts_.attachments.CheckOpen(speaker); !status.ok()) return status;
  const Attachments::Pace pace = parts_.attachments.TellPace(now, speaker.group, steps_per_second);
  // Count the rounds of the first rank's blocks, because it has blocks of every fragment that is not empty.
  const Range common = Intersect(plan().SliceOf(0), plan().blocks);
  std::vector<uint64_t> rounds;
  for (uint32_t i = 0; i < plan().fragments(); ++i) {
    const Range blocks = FragmentBlocks(common, {i, plan().fragments()});
    rounds.push_back(blocks.empty() ? std::numeric_limits<uint64_t>::max() : 0);
    if (blocks.empty()) continue;
    const BlockTurns& first = blocks_[blocks.begin - plan().blocks.begin];
    absl::MutexLock lock(&first.mutex);
    rounds.back() = first.block.updates();
  }
  return Pace{pace, NextFragment(rounds)};
}

absl::Status Shard::WriteInitial(absl::Time now, const Speaker& speaker, uint64_t first,
                                 absl::Span<const float> values) {
  absl::StatusOr<uint64_t> index = plan().FindBlock(first, values.size());
  if (!index.ok()) return index.status();
  if (absl::Status status = CheckFinite(speaker.group, first, values); !status.ok()) return status;
  return parts_.attachments.WriteInitial(now, speaker, [&at = blocks_[*index], values] {
    absl::MutexLock lock(&at.mutex);
    at.block.WriteInitial(values);
  });
}

uint32_t Shard::first_incarnation() const {
  return std::max<uint32_t>(plan().job.first_incarnation(), parts_.attachments.successor());
}

std::vector<GroupReached> Shard::EndGeneration(uint32_t successor) {
  parts_.attachments.Close(std::max(successor, parts_.attachments.successor()));
  LookAgain();
  if (blocks() == 0 || !initialized()) return {};
  std::vector<GroupReached> reached(plan().job.groups(), {0, std::numeric_limits<uint64_t>::max()});
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    for (uint32_t group = 0; group < plan().job.groups(); ++group) {
      const ExchangeId& applied = blocks_[i].block.applied(group);
      reached[group].incarnation = std::max(reached[group].incarnation, applied.incarnation);
      reached[group].step = std::min(reached[group].step, applied.sequence);
    }
  }
  return reached;
}

void Shard::Close() {
  parts_.attachments.Close(0);
  LookAgain();
}

void Shard::StopWaiting() {
  parts_.attachments.StopWaiting();
  LookAgain();
}

uint64_t Shard::HighestSequence(uint32_t group) const {
  uint64_t highest = 0;
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    highest = std::max(highest, blocks_[i].block.applied(group).sequence);
  }
  return highest;
}

uint64_t Shard::LastSequence(uint32_t group) const {
  uint64_t lowest = std::numeric_limits<uint64_t>::max();
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    lowest = std::min(lowest, blocks_[i].block.applied(group).sequence);
  }
  return lowest;
}

BlockCopy Shard::CopyBlock(uint64_t block) const {
  absl::MutexLock lock(&blocks_[block].mutex);
  return blocks_[block].block.Copy();
}

void Shard::RestoreBlock(uint64_t block, BlockCopy copy) {
  absl::MutexLock lock(&blocks_[block].mutex);
  blocks_[block].block.Restore(std::move(copy));
}

void Shard::RestoreState(const Groups& groups, uint64_t updates) {
  parts_.attachments.Restore(groups);
  parts_.updates.store(updates, std::memory_order_release);
  // Running groups do not attach again. If they did not enter the roster here, the first one that comes would wait for
  // no other group.
  for (uint32_t group = 0; group < plan().job.groups(); ++group) {
    if (groups.incarnations[group] == 0) continue;
    const uint64_t sequence = LastSequence(group);
    absl::MutexLock lock(&parts_.book_mutex);
    parts_.book.NoteCome(group);
    if (plan().IsLastStep(sequence) || groups.ended[group] == groups.incarnations[group]) {
      parts_.book.roster().End(group);
    } else {
      parts_.book.roster().Enter(group, sequence);
    }
  }
}

}  // namespace hooke
