#include "job/job_defaults.h"

#include <cstdint>

#include "algorithms/elastic.h"
#include "algorithms/rule_facts.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/job_check.h"
#include "job/job_field.h"
#include "job/job_keys.h"

namespace hooke {
namespace {

void FillPresets(v1::JobSpec& job) {
  for (const JobKey& key : JobKeys()) {
    if (!key.preset.has_value() || IsGiven(key, job)) continue;
    if (DependsOnCommand(key) && !Applies(key, job)) continue;
    // value() is safe, because the preset comes from the table.
    SetField(key, ParseKeyValue(key, *key.preset, /*quoted=*/false).value(), job);
  }
}

// Some defaults follow from other keys. The functions below compute them, as the table's `default_text` describes them
// to people.

void FillTrain(v1::TrainSpec& train) {
  v1::OptimizerSpec& optimizer = *train.mutable_optimizer();
  if (optimizer.learning_rate() == 0) {
    optimizer.set_learning_rate(optimizer.name() == v1::OptimizerSpec::SGD ? 0.05 : 0.001);
  }
  if (!optimizer.has_weight_decay()) {
    optimizer.set_weight_decay(optimizer.name() == v1::OptimizerSpec::ADAMW ? 0.01 : 0);
  }
  if (train.schedule().step_epochs() == 0) train.mutable_schedule()->set_step_epochs(train.epochs() / 3.0);
}

void FillAveraging(uint32_t groups, v1::AveragingSpec& averaging) {
  // An unknown rule gets the defaults of the first; CheckJob refuses it later.
  const RuleDefaults& defaults = FactsOf(RuleOf(averaging.rule()).value_or(AllRules().front().rule)).defaults;
  if (averaging.interval() == 0 || averaging.interval_auto()) averaging.set_interval(defaults.interval);
  if (averaging.staleness_bound() == 0) averaging.set_staleness_bound(4 * averaging.interval());
  if (averaging.learning_rate() == 0) averaging.set_learning_rate(defaults.learning_rate);
  if (!averaging.has_momentum()) {
    averaging.set_momentum(defaults.momentum == kMomentumByGroups ? 1 - 1.0 / groups : defaults.momentum);
  }
  if (averaging.alpha() == 0) averaging.set_alpha(DefaultElasticAlpha(groups));
}

v1::AveragingSpec AveragingDefaults(v1::AveragingSpec::Rule rule, const v1::GroupsSpec& groups) {
  v1::JobSpec job;
  *job.mutable_groups() = groups;
  job.mutable_averaging()->set_rule(rule);
  return FillDefaults(job).averaging();
}

}  // namespace

v1::JobSpec FillDefaults(v1::JobSpec job) {
  FillPresets(job);
  FillKinds(job);
  // A user's program may not keep what it needs to go on. A built-in network does.
  if (!job.has_preemptible()) job.set_preemptible(!HasCommand(job));
  FillTrain(*job.mutable_train());
  FillAveraging(job.groups().count(), *job.mutable_averaging());
  return job;
}

v1::JobSpec WithGroups(v1::JobSpec job, const v1::GroupsSpec& groups) {
  v1::AveragingSpec& averaging = *job.mutable_averaging();
  const v1::AveragingSpec before = AveragingDefaults(averaging.rule(), job.groups());
  const v1::AveragingSpec after = AveragingDefaults(averaging.rule(), groups);
  if (averaging.alpha() == before.alpha()) averaging.set_alpha(after.alpha());
  if (averaging.momentum() == before.momentum()) averaging.set_momentum(after.momentum());
  *job.mutable_groups() = groups;
  return job;
}

}  // namespace hooke
