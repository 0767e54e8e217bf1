#include "server/parameters/shard_parts.h"

#include <algorithm>
#include <utility>

namespace hooke {

ShardParts::ShardParts(ShardPlan of, std::unique_ptr<CenterRule> by, std::shared_ptr<WaitClock> wait_clock)
    : plan(std::move(of)),
      rule(std::move(by)),
      clock(std::move(wait_clock)),
      meter(plan.job.groups(), clock),
      attachments(plan),
      book({plan.job.groups(), plan.slices(), rule->traits().in_rounds ? plan.blocks.size() : 0, plan.rule.round,
            rule->traits().drops_late}) {}

Contribution ShardParts::ContributionOf(const Turn& turn, const Block& block) const {
  const ExchangeId& last = block.applied(turn.group());
  uint64_t begin = last.sequence;
  if (last.incarnation != turn.id.incarnation) {  // Otherwise RoundBook::StepsFrom would return the same.
    absl::MutexLock lock(&book_mutex);
    begin = book.StepsFrom(turn.group(), turn.id, last);
  }
  const uint64_t interval = std::max<uint64_t>(plan.job.interval(), 1);
  Contribution from;
  from.group = turn.group();
  from.sequence = turn.id.sequence;
  // A new incarnation may repeat steps that are in the block already. Then the contribution counts as one interval.
  from.steps = turn.id.sequence > begin ? turn.id.sequence - begin : interval;
  if (!plan.job.group_samples().empty()) from.samples = plan.job.group_samples(static_cast<int>(turn.group()));
  from.staleness = block.Staleness(turn.group(), turn.id.incarnation);
  from.values = turn.values;
  return from;
}

absl::Status ShardParts::Update(absl::Span<const Contribution> from, size_t live, const Turn& turn, Block& block) {
  uint64_t furthest = 1;
  for (const Contribution& each : from) furthest = std::max(furthest, each.sequence);
  const WholeRound whole = {static_cast<uint32_t>(live), plan.job.interval()};
  absl::Status status =
      block.Apply(*rule, {from, whole, plan.EpochBefore(furthest), turn.moderate, plan.job_id}, turn.answer);
  if (status.ok()) updates.fetch_add(1, std::memory_order_release);
  return status;
}

void ShardParts::LookBy(absl::Time when, BlockTurns& at) {
  at.look_at = std::min(at.look_at, when);
  looks.LookBy(at.look_at);
}

}  // namespace hooke
