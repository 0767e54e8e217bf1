// Shard: copies of its contents, for a snapshot and for a later generation of the job, and their way into another
// Shard.

#include <algorithm>
#include <utility>

#include "server/parameters/shard.h"

namespace hooke {

Shard::BlockCopy Shard::CopyBlock(uint64_t block) const {
  absl::MutexLock lock(&blocks_[block].mutex);
  return {blocks_[block].applied, blocks_[block].updates, blocks_[block].values, blocks_[block].state};
}

Shard::BlockCopy Shard::HandOverBlock(uint64_t block) {
  absl::MutexLock lock(&blocks_[block].mutex);
  return {
      {}, blocks_[block].updates, std::exchange(blocks_[block].values, {}), std::exchange(blocks_[block].state, {})};
}

Shard::Groups Shard::CopyGroups() const {
  absl::MutexLock lock(&mutex_);
  Groups groups;
  groups.successor = successor_;
  for (uint32_t group = 0; group < plan_.job.groups(); ++group) groups.incarnations.push_back(incarnations_[group]);
  absl::MutexLock book_lock(&book_mutex_);
  groups.ended = ended_;
  groups.stop = stops_;
  return groups;
}

void Shard::RestoreBlock(uint64_t block, BlockCopy copy) {
  absl::MutexLock lock(&blocks_[block].mutex);
  blocks_[block].applied = std::move(copy.applied);
  blocks_[block].values = std::move(copy.values);
  blocks_[block].state = std::move(copy.state);
  blocks_[block].updates = copy.updates;
  // The snapshot does not tell which version each group has seen, so no group counts as late.
  std::fill(blocks_[block].seen.begin(), blocks_[block].seen.end(), copy.updates);
}

void Shard::RestoreState(const Groups& groups, uint64_t updates) {
  absl::MutexLock lock(&mutex_);
  for (uint32_t group = 0; group < plan_.job.groups(); ++group) incarnations_[group] = groups.incarnations[group];
  attach_.initialized = true;
  successor_ = groups.successor;
  closed_ = groups.successor > 0;
  updates_.store(updates, std::memory_order_release);
  {
    absl::MutexLock book_lock(&book_mutex_);
    ended_ = groups.ended;
    stops_ = groups.stop;
  }
  // Running groups do not attach again. If they did not enter the roster here, the first one that comes would wait for
  // no other group.
  for (uint32_t group = 0; group < plan_.job.groups(); ++group) {
    if (groups.incarnations[group] == 0) continue;
    const uint64_t sequence = LastSequence(group);
    absl::MutexLock book_lock(&book_mutex_);
    book_.NoteCome(group);
    if (IsLastStep(sequence) || groups.ended[group] == groups.incarnations[group]) {
      book_.roster().End(group);
    } else {
      book_.roster().Enter(group, sequence);
    }
  }
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Succeed(ShardPlan plan, Shard& before) {
  const bool same_state = plan.rule.traits.state_values == before.plan().rule.traits.state_values;
  absl::StatusOr<std::unique_ptr<Shard>> made =
      Make(std::move(plan), before.clock_, same_state ? Memory::kOfAnother : Memory::kValuesOfAnother);
  if (made.ok()) (*made)->TakeOver(before);
  return made;
}

// Once `before` is closed, none of its turns changes a block, and none of its groups ends. Nothing here can fail then.
void Shard::TakeOver(Shard& before) {
  const bool same_state = rule_->traits().state_values == before.rule_->traits().state_values;
  before.CloseFor(plan_.job.first_incarnation());
  for (uint64_t i = 0; i < blocks(); ++i) {
    BlockCopy block = before.HandOverBlock(i);
    absl::MutexLock lock(&blocks_[i].mutex);
    blocks_[i].values = std::move(block.values);
    if (same_state) blocks_[i].state = std::move(block.state);
    blocks_[i].updates = block.updates;
    // All groups begin with the present center.
    std::fill(blocks_[i].seen.begin(), blocks_[i].seen.end(), block.updates);
  }
  updates_.store(before.updates() + 1, std::memory_order_release);  // A snapshot must store the generation.
  meter_.AddCounts(before.meter_.Read());
  served_ = before.served_;
  const bool stops = before.CopyGroups().stop;
  const bool initialized = before.initialized();
  absl::MutexLock lock(&mutex_);
  attach_.initialized = initialized;
  absl::MutexLock book_lock(&book_mutex_);
  stops_ = stops;
}

}  // namespace hooke
