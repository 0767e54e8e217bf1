#include "worker/exchange/shard_job.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "algorithms/rule_facts.h"
#include "job/group_kinds.h"

namespace hooke {
namespace {

using Averaging = v1::AveragingSpec;

// Makes the center step by the groups' own optimizer, with the gradients that the groups send.
void StepLikeGroups(const v1::TrainSpec& train, v1::JobSpecForShard& shard) {
  *shard.mutable_optimizer() = train.optimizer();
  *shard.mutable_schedule() = train.schedule();
}

// Makes the center step by momentum SGD, with the distances that the groups have moved in place of gradients.
void StepByDistances(const Averaging& averaging, const v1::TrainSpec& train, v1::JobSpecForShard& shard) {
  v1::OptimizerSpec& optimizer = *shard.mutable_optimizer();
  optimizer.set_name(v1::OptimizerSpec::SGD);
  // 0, because the interval varies.
  if (averaging.interval_seconds() > 0 || averaging.interval_auto()) shard.set_interval(0);
  const RuleFacts& facts = FactsOf(*RuleOf(averaging.rule()));
  optimizer.set_learning_rate(facts.has_momentum ? averaging.learning_rate() : 1);
  optimizer.set_momentum(facts.has_momentum ? averaging.momentum() : 0);
  optimizer.set_nesterov(facts.nesterov == RuleNesterov::kAlways
                             ? averaging.momentum() > 0
                             : facts.nesterov == RuleNesterov::kByJob && averaging.nesterov());
  if (facts.relative_to_rate) {
    *shard.mutable_schedule() = train.schedule();
  } else {
    shard.mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  }
}

// In a round, a group counts by the samples that it trains in a step.
void SetGroupSamples(const v1::JobSpec& job, v1::JobSpecForShard& shard) {
  const std::vector<uint64_t> samples = SamplesOfGroups(job);
  const bool alike = std::adjacent_find(samples.begin(), samples.end(), std::not_equal_to<>()) == samples.end();
  if (alike || !InRounds(*RuleOf(job.averaging().rule()))) return;
  for (const uint64_t each : samples) shard.add_group_samples(static_cast<uint32_t>(each));
}

bool Varies(const v1::ScheduleSpec& schedule) {
  return schedule.name() != v1::ScheduleSpec::CONSTANT || schedule.warmup_epochs() > 0;
}

// Sets the length of a group's training. `shard` has its schedule already.
void SetLength(const v1::TrainSpec& train, const ShardJobNumbers& numbers, v1::JobSpecForShard& shard) {
  shard.set_epochs(train.epochs());
  shard.set_steps_per_epoch(numbers.steps_per_epoch);
  if (!numbers.steps_total.has_value()) return;
  const uint64_t total = *numbers.steps_total;
  const uint64_t per_epoch = numbers.steps_per_epoch;
  if (!Varies(shard.schedule()) && (total == 0 || per_epoch == 0 || total % per_epoch != 0)) {
    // The rate does not depend on the epoch, so all steps may be one epoch.
    shard.set_epochs(1);
    shard.set_steps_per_epoch(total > 0 ? total : std::numeric_limits<uint64_t>::max());
    return;
  }
  if (total == 0 || per_epoch == 0) return;
  const uint64_t epochs = (total - 1) / per_epoch + 1;
  const uint64_t least = Varies(shard.schedule()) ? train.epochs() : 1;
  shard.set_epochs(static_cast<uint32_t>(std::clamp<uint64_t>(epochs, least, std::numeric_limits<uint32_t>::max())));
}

// Sets the length of a group's training in a later generation. Its steps do not begin with the first epoch, so
// steps_total names the last step.
void SetLaterLength(const v1::TrainSpec& train, const ShardJobNumbers& numbers, v1::JobSpecForShard& shard) {
  const bool varies = Varies(shard.schedule());
  const uint64_t per_epoch = numbers.steps_per_epoch;
  const uint64_t total = numbers.steps_total.value_or(0);
  shard.set_steps_total(total);
  if (!varies || per_epoch == 0) {
    shard.set_epochs(1);
    shard.set_steps_per_epoch(total > 0 && per_epoch > 0 ? per_epoch : std::numeric_limits<uint64_t>::max());
    return;
  }
  shard.set_steps_per_epoch(per_epoch);
  shard.set_first_epoch(numbers.first_epoch);
  const auto steps_of_epoch = static_cast<double>(per_epoch);
  double epochs = train.epochs();
  if (total > 0) {
    const uint64_t left = total - std::min(total, numbers.first_step);
    epochs = std::max(epochs, std::ceil(numbers.first_epoch + static_cast<double>(left) / steps_of_epoch));
  } else {
    const double left = std::max(0.0, epochs - numbers.first_epoch);
    shard.set_steps_total(numbers.first_step + static_cast<uint64_t>(std::llround(left * steps_of_epoch)));
  }
  shard.set_epochs(static_cast<uint32_t>(std::min<double>(epochs, std::numeric_limits<uint32_t>::max())));
}

}  // namespace

bool CountsEpochs(const v1::JobSpec& job) {
  const RuleFacts& facts = FactsOf(*RuleOf(job.averaging().rule()));
  return (facts.relative_to_rate || facts.sends == RuleSends::kGradients) && Varies(job.train().schedule());
}

v1::JobSpecForShard ShardJob(const v1::JobSpec& job, const ShardJobNumbers& numbers) {
  const Averaging& averaging = job.averaging();
  v1::JobSpecForShard shard;
  shard.set_rule(averaging.rule());
  shard.set_alpha(averaging.alpha());
  shard.set_groups(job.groups().count());
  shard.set_ranks(job.groups().ranks());
  if (const uint32_t fewest = FewestRanks(job); fewest < shard.ranks()) shard.set_slices(fewest);
  if (averaging.compression() > Averaging::COMPRESSION_NONE) shard.set_compression(averaging.compression());
  if (averaging.compression() == Averaging::COMPRESSION_TOP_K) shard.set_top_k(averaging.top_k());
  shard.set_first_incarnation(numbers.first_incarnation);
  shard.set_first_step(numbers.first_step);
  const RuleSends sends = FactsOf(*RuleOf(averaging.rule())).sends;
  if (sends == RuleSends::kParameters) return shard;
  shard.set_interval(averaging.interval());
  shard.set_parameters(numbers.parameters);
  shard.set_quorum(averaging.quorum());
  shard.set_grace_seconds(averaging.grace_seconds());
  shard.set_staleness_bound(averaging.staleness_bound());
  shard.set_staleness_power(averaging.staleness_power());
  shard.set_fragments(averaging.fragments());
  if (sends == RuleSends::kDistances) {
    StepByDistances(averaging, job.train(), shard);
  } else {
    StepLikeGroups(job.train(), shard);
  }
  if (numbers.first_incarnation > 0) {
    SetLaterLength(job.train(), numbers, shard);
  } else {
    SetLength(job.train(), numbers, shard);
  }
  SetGroupSamples(job, shard);
  return shard;
}

}  // namespace hooke
